using System;
using System.Collections.Generic;
using System.IO;
using System.Net.Http;
using System.Threading;
using System.Threading.Tasks;
using Newtonsoft.Json;
using Newtonsoft.Json.Linq;

namespace Haggle
{
    /// <summary>A player and a character. Keep Id to go on later.</summary>
    public class Session
    {
        readonly HaggleClient client;
        readonly string path;

        public Visit Visit { get; private set; }
        public string Id { get { return Visit.Session; } }

        internal Session(HaggleClient client, Visit visit)
        {
            this.client = client;
            Visit = visit;
            path = "/sessions/" + visit.Session;
        }

        /// <summary>Say a line. onState hears the decision, onText the words as they come, onRestart
        /// that the words start anew; the answer counts.</summary>
        public async Task<Answer> Say(
            string text, Action<string> onText = null, Action<Decision> onState = null, Action onRestart = null,
            bool explain = false, CancellationToken stop = default(CancellationToken))
        {
            var line = JsonConvert.SerializeObject(new { text, stream = true, explain });
            // The same for each try: a turn that the server has stored is not made again.
            var key = Guid.NewGuid().ToString();
            return await client.Patiently(async attempt =>
            {
                if (attempt > 0)
                    onRestart?.Invoke();
                return await Stream(line, key, onText, onState, stop);
            });
        }

        async Task<Answer> Stream(
            string line, string key, Action<string> onText, Action<Decision> onState, CancellationToken stop)
        {
            using (var response = await client.Send(HttpMethod.Post, path + "/turns", line, stop, key))
            using (var reader = new StreamReader(await response.Content.ReadAsStreamAsync()))
            {
                var kind = "";
                string read;
                while ((read = await Next(reader)) != null)
                {
                    stop.ThrowIfCancellationRequested();
                    if (read.StartsWith("event:"))
                        kind = read.Substring(6).Trim();
                    if (!read.StartsWith("data:"))
                        continue;
                    var data = JObject.Parse(read.Substring(5));
                    if (kind == "state")
                        onState?.Invoke(data.ToObject<Decision>());
                    else if (kind == "text")
                        onText?.Invoke((string)data["text"]);
                    else if (kind == "done")
                        return data.ToObject<Answer>();
                    else if (kind == "error")
                        throw new HaggleException((int?)data["status"] ?? 503, data, (double?)data["retry_after"] ?? 0);
                }
            }
            throw new UnreachableException("the answer broke off");
        }

        static async Task<string> Next(StreamReader reader)
        {
            try { return await reader.ReadLineAsync(); }
            catch (IOException error) { throw new UnreachableException("the answer broke off", error); }
            catch (HttpRequestException error) { throw new UnreachableException("the answer broke off", error); }
        }

        /// <summary>Where the session stands now.</summary>
        public async Task<Visit> Look()
        {
            Visit = await client.Get<Visit>(path);
            return Visit;
        }

        public Task<List<Receipt>> Receipts() { return client.Get<List<Receipt>>(path + "/receipts"); }

        /// <summary>Close the sale of the review on the table, as a button in the game does.</summary>
        public Task<Answer> Confirm(string review)
        {
            var body = JsonConvert.SerializeObject(new { review });
            return client.Patiently(attempt => client.Call<Answer>(HttpMethod.Post, path + "/confirm", body));
        }

        /// <summary>Forget the session on the server.</summary>
        public async Task Close() { await client.Call<object>(HttpMethod.Delete, path, null); }
    }
}

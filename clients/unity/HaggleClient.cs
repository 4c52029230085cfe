// A client of `haggle serve` for Unity (2021 or newer) and .NET. Needs Newtonsoft's Json.NET:
// in Unity the package com.unity.nuget.newtonsoft-json.
using System;
using System.Collections.Generic;
using System.IO;
using System.Net.Http;
using System.Net.Http.Headers;
using System.Text;
using System.Threading;
using System.Threading.Tasks;
using Newtonsoft.Json;
using Newtonsoft.Json.Linq;

namespace Haggle
{
    /// <summary>What the server refused: its status, what was wrong, where, what to do.</summary>
    public class HaggleException : Exception
    {
        public readonly int Status;
        public readonly string Where;
        public readonly string Hint;
        public readonly double Wait;

        public HaggleException(int status, JObject told, double wait)
            : base((string)told["message"] ?? "the server answered " + status)
        {
            Status = status;
            Where = (string)told["where"] ?? "";
            Hint = (string)told["hint"] ?? "";
            Wait = wait;
        }
    }

    /// <summary>Nobody answers, or an answer broke off.</summary>
    public class UnreachableException : Exception
    {
        public UnreachableException(string message, Exception cause = null) : base(message, cause) { }
    }

    /// <summary>A Haggle server.</summary>
    public class HaggleClient
    {
        const double Pause = 0.5, LongestPause = 8; // seconds between tries, doubled each time
        readonly HttpClient http = new HttpClient { Timeout = System.Threading.Timeout.InfiniteTimeSpan };
        readonly string root;
        readonly int tries;

        /// <summary>Called before each wait: what went wrong, and for how many seconds.</summary>
        public Action<Exception, double> OnWait = (error, seconds) => { };

        public HaggleClient(string url, string key = null, int tries = 8)
        {
            root = url.TrimEnd('/') + "/v1";
            this.tries = tries;
            if (key != null)
                http.DefaultRequestHeaders.Authorization = new AuthenticationHeaderValue("Bearer", key);
        }

        public Task<List<ShopEntry>> Shops() { return Get<List<ShopEntry>>("/shops"); }

        public Task<List<Character>> Characters() { return Get<List<Character>>("/characters"); }

        /// <summary>Open a session: a character and, for the merchant, a shop by name.</summary>
        public async Task<Session> Open(string character = "merchant", string shop = null, string player = null)
        {
            var opening = JsonConvert.SerializeObject(new { character, shop, player });
            var visit = await Patiently(attempt => Call<Visit>(HttpMethod.Post, "/sessions", opening));
            return new Session(this, visit);
        }

        /// <summary>Go on with a session whose id the game kept.</summary>
        public async Task<Session> Resume(string id)
        {
            return new Session(this, await Get<Visit>("/sessions/" + id));
        }

        internal Task<T> Get<T>(string path)
        {
            return Patiently(attempt => Call<T>(HttpMethod.Get, path, null));
        }

        internal async Task<T> Call<T>(HttpMethod method, string path, string body)
        {
            using (var response = await Send(method, path, body, CancellationToken.None))
            {
                try
                {
                    return JsonConvert.DeserializeObject<T>(await response.Content.ReadAsStringAsync());
                }
                catch (IOException error) { throw new UnreachableException("the answer broke off", error); }
                catch (HttpRequestException error) { throw new UnreachableException("the answer broke off", error); }
            }
        }

        internal async Task<HttpResponseMessage> Send(
            HttpMethod method, string path, string body, CancellationToken stop, string key = null)
        {
            var request = new HttpRequestMessage(method, root + path);
            if (key != null)
                request.Headers.Add("Idempotency-Key", key);
            if (body != null)
                request.Content = new StringContent(body, Encoding.UTF8, "application/json");
            HttpResponseMessage response;
            try
            {
                response = await http.SendAsync(request, HttpCompletionOption.ResponseHeadersRead, stop);
            }
            catch (HttpRequestException error) { throw new UnreachableException("the server does not answer", error); }
            if (response.IsSuccessStatusCode)
                return response;
            var wait = response.Headers.RetryAfter?.Delta?.TotalSeconds ?? 0;
            var text = await response.Content.ReadAsStringAsync();
            throw new HaggleException((int)response.StatusCode, Told(text), wait);
        }

        static JObject Told(string text)
        {
            try { return JObject.Parse(text)["error"] as JObject ?? new JObject(); }
            catch (JsonException) { return new JObject(); } // a proxy's page, say
        }

        /// <summary>Try until it succeeds; wait longer each time while nobody answers or there is a queue.</summary>
        internal async Task<T> Patiently<T>(Func<int, Task<T>> action)
        {
            for (var attempt = 0; ; attempt++)
            {
                double seconds;
                try { return await action(attempt); }
                catch (Exception error) when (Again(error, attempt) && attempt + 1 < tries)
                {
                    seconds = Math.Min(LongestPause, Pause * Math.Pow(2, attempt));
                    if (error is HaggleException refused && refused.Wait > 0)
                        seconds = refused.Wait;
                    OnWait(error, seconds);
                }
                await Task.Delay(TimeSpan.FromSeconds(seconds));
            }
        }

        static bool Again(Exception error, int attempt)
        {
            if (error is UnreachableException)
                return true;
            var refused = error as HaggleException;
            if (refused == null)
                return false;
            // 409 after a broken answer: the turn may still be under way.
            return refused.Status == 429 || (refused.Status == 503 && refused.Wait > 0)
                || (refused.Status == 409 && attempt > 0);
        }
    }
}

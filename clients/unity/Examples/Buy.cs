// Buys two ropes from a console: the same calls as in a game. Usage: Buy http://127.0.0.1:8000
using System;
using System.Threading.Tasks;
using Haggle;

public static class Buy
{
    public static int Main(string[] arguments)
    {
        Trade(arguments.Length > 0 ? arguments[0] : "http://127.0.0.1:8000").GetAwaiter().GetResult();
        return 0;
    }

    static async Task Trade(string url)
    {
        var client = new HaggleClient(url);
        client.OnWait = (error, seconds) => Console.Error.WriteLine(error.Message + "; again in " + seconds + " s");
        var session = await client.Open(shop: "frontier_shop", player: "unity");
        foreach (var line in new[] { "two sturdy ropes, please", "deal", "yes" })
        {
            Console.Write("you: " + line + "\n" + session.Visit.Merchant + ": ");
            var answer = await session.Say(line, onText: Console.Write);
            Console.WriteLine("\n     " + answer.Last + " -> " + answer.State);
        }
        foreach (var receipt in await session.Receipts())
            Console.WriteLine("paid " + receipt.Price + " " + receipt.Currency);
        await session.Close();
    }
}

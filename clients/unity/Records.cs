// What the server answers, as far as games need it. Fields that are not here are passed over.
using System.Collections.Generic;
using Newtonsoft.Json;

namespace Haggle
{
    public class Line
    {
        [JsonProperty("item_id")] public string ItemId;
        [JsonProperty("item_name")] public string ItemName;
        [JsonProperty("quantity")] public int Quantity;
        [JsonProperty("price")] public double? Price;
        [JsonProperty("description")] public string Description;
    }

    public class Sale
    {
        [JsonProperty("items")] public List<Line> Items;
        [JsonProperty("price")] public double Price;
    }

    public class Receipt : Sale
    {
        [JsonProperty("list_price")] public double ListPrice;
        [JsonProperty("currency")] public string Currency;
        [JsonProperty("time")] public string Time;
    }

    public class Decision
    {
        [JsonProperty("last")] public string Last;
        [JsonProperty("state")] public string State;
        [JsonProperty("cart")] public List<Line> Cart;
        [JsonProperty("price")] public double? Price;
    }

    public class Withheld
    {
        [JsonProperty("reason")] public string Reason;
        [JsonProperty("words")] public string Words;
    }

    public class Answer : Decision
    {
        [JsonProperty("say")] public string Say;
        [JsonProperty("sale")] public Sale Sale;
        [JsonProperty("ended")] public bool Ended;
        [JsonProperty("review")] public string Review;
        [JsonProperty("withheld")] public Withheld Withheld;
        [JsonProperty("interventions")] public List<string> Interventions;
        [JsonProperty("success")] public bool? Success;
    }

    public class Procedure
    {
        [JsonProperty("states")] public List<string> States;
        [JsonProperty("now")] public string Now;
        [JsonProperty("legal")] public List<string> Legal;
    }

    public class Visit
    {
        [JsonProperty("session")] public string Session;
        [JsonProperty("character")] public string Character;
        [JsonProperty("shop")] public string Shop;
        [JsonProperty("merchant")] public string Merchant;
        [JsonProperty("currency")] public string Currency;
        [JsonProperty("state")] public string State;
        [JsonProperty("procedure")] public Procedure Procedure;
        [JsonProperty("cart")] public List<Line> Cart;
        [JsonProperty("price")] public double? Price;
        [JsonProperty("sales")] public List<Sale> Sales;
        [JsonProperty("shelf")] public List<Line> Shelf;
        [JsonProperty("purse")] public double? Purse;
        [JsonProperty("ended")] public bool Ended;
        [JsonProperty("review")] public string Review;
        [JsonProperty("greeting")] public string Greeting;
    }

    public class ShopEntry
    {
        [JsonProperty("name")] public string Name;
        [JsonProperty("merchant")] public string Merchant;
        [JsonProperty("currency")] public string Currency;
        [JsonProperty("items")] public int Items;
    }

    public class Character
    {
        [JsonProperty("name")] public string Name;
        [JsonProperty("kind")] public string Kind;
        [JsonProperty("title")] public string Title;
        [JsonProperty("goal")] public string Goal;
    }
}

#if UNITY_2021_1_OR_NEWER
// Put this on a character. Call Say from your input field; draw Words in the speech bubble.
using System;
using Haggle;
using UnityEngine;

public class MerchantBehaviour : MonoBehaviour
{
    public string Url = "http://127.0.0.1:8000";
    public string Shop = "frontier_shop";
    public string Words = "";
    public event Action<Answer> Answered;

    Session session;

    async void Start()
    {
        var client = new HaggleClient(Url);
        var kept = PlayerPrefs.GetString("haggle.session", "");
        try { session = kept == "" ? await client.Open(shop: Shop) : await client.Resume(kept); }
        catch (HaggleException) { session = await client.Open(shop: Shop); } // the server has forgotten it
        PlayerPrefs.SetString("haggle.session", session.Id);
        Words = session.Visit.Greeting;
    }

    public async void Say(string line)
    {
        Words = "";
        var answer = await session.Say(line, onText: piece => Words += piece, onRestart: () => Words = "");
        Words = answer.Say; // the finished line counts
        Answered?.Invoke(answer);
    }
}
#endif

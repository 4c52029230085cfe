# Buys two ropes from a console:
#     godot --headless --path clients/godot --script example/buy.gd -- http://127.0.0.1:8000
extends SceneTree

const Client := preload("res://addons/haggle/haggle.gd")


func _initialize() -> void:
	_buy()


func _buy() -> void:
	var haggle := Client.new()
	var given := OS.get_cmdline_user_args()
	if given.size() > 0:
		haggle.url = given[0]
	root.add_child(haggle)
	await process_frame
	haggle.spoke.connect(func(piece: String) -> void: printraw(piece))
	var opened: Dictionary = await haggle.open({"shop": "frontier_shop", "player": "godot"})
	if opened.has("error"):
		printerr(opened.error)
		quit(1)
		return
	for line: String in ["two sturdy ropes, please", "deal", "yes"]:
		printraw("you: " + line + "\n" + haggle.visit.merchant + ": ")
		var answer: Dictionary = await haggle.say(line)
		print("\n     ", answer.get("last", ""), " -> ", answer.get("state", answer))
	for receipt: Dictionary in await haggle.receipts():
		print("paid ", receipt.price, " ", receipt.currency)
	quit(0)

## A client of `haggle serve` for Godot 4. Add it to the scene tree, set `url`, then:
##     await haggle.open({"shop": "frontier_shop"})
##     var answer := await haggle.say("two ropes, please")
## An answer with the key "error" tells what was wrong: {"error": {"message", "where", "hint"}}.
class_name Haggle
extends Node

signal decided(decision: Dictionary)  ## what the turn comes to, before its words
signal spoke(piece: String)  ## words as they come
signal restarted  ## the words start anew
signal waiting(reason: String, seconds: float)  ## nobody answers, or there is a queue

const PAUSE := 0.5  # seconds before the second try, doubled each time
const LONGEST_PAUSE := 8.0
const BROKEN := {"error": {"message": "the server does not answer"}, "status": 0}

@export var url := "http://127.0.0.1:8000"
@export var key := ""
@export var tries := 8

var visit := {}  ## where the session stands; visit.session is the id to keep


func shops() -> Variant:
	return await _patiently("GET", "/shops")


func characters() -> Variant:
	return await _patiently("GET", "/characters")


## Opens a session: a character and, for the merchant, a shop.
func open(opening := {}) -> Dictionary:
	var opened: Variant = await _patiently("POST", "/sessions", opening)
	if not _failed(opened):
		visit = opened
	return opened


## Goes on with a session whose id the game kept.
func resume(id: String) -> Dictionary:
	var found: Variant = await _patiently("GET", "/sessions/" + id)
	if not _failed(found):
		visit = found
	return found


## Says a line and returns the answer. Signals tell the decision and the words before that.
func say(text: String, explain := false) -> Dictionary:
	var line := {"text": text, "stream": true, "explain": explain}
	# The same for each try: a turn that the server has stored is not made again.
	# Not randi(): that repeats where a game calls seed().
	var once := Crypto.new().generate_random_bytes(16).hex_encode()
	return await _patiently("POST", _path("/turns"), line, once)


func look() -> Dictionary:
	var found: Variant = await _patiently("GET", _path())
	if not _failed(found):
		visit = found
	return found


func receipts() -> Variant:
	return await _patiently("GET", _path("/receipts"))


## Closes the sale of the review on the table, as a button in the game does.
func confirm(review: String) -> Dictionary:
	return await _patiently("POST", _path("/confirm"), {"review": review})


func _path(rest := "") -> String:
	return "/sessions/" + str(visit.get("session", "")) + rest


func _failed(answer: Variant) -> bool:
	return answer is Dictionary and answer.has("error")


func _patiently(method: String, path: String, body: Variant = null, once := "") -> Variant:
	for attempt in tries:
		if attempt > 0 and once != "":
			restarted.emit()
		var answer: Variant = await _request(method, path, body, once)
		if not _again(answer, attempt) or attempt + 1 == tries:
			return answer
		await _pause(answer, attempt)
	return BROKEN


# 0: no answer, or a broken one. 409 after that: the turn may still be under way.
func _again(answer: Variant, attempt: int) -> bool:
	if not _failed(answer):
		return false
	var status := int(answer.get("status", 0))
	return status in [0, 429] or (status == 409 and attempt > 0) or (status == 503 and answer.get("wait", 0.0) > 0)


func _pause(answer: Dictionary, attempt: int) -> void:
	var seconds := float(answer.get("wait", 0.0))
	if seconds <= 0:
		seconds = min(LONGEST_PAUSE, PAUSE * pow(2, attempt))
	waiting.emit(str(answer.error.get("message", "")), seconds)
	await get_tree().create_timer(seconds).timeout


func _request(method: String, path: String, body: Variant, once: String) -> Variant:
	var http := HTTPClient.new()
	var answer: Variant = await _exchange(http, method, path, body, once)
	http.close()
	return answer


func _exchange(http: HTTPClient, method: String, path: String, body: Variant, once: String) -> Variant:
	var place := _place()
	var tls: TLSOptions = TLSOptions.client() if place.tls else null
	if http.connect_to_host(place.host, place.port, tls) != OK:
		return BROKEN
	if not await _while(http, [HTTPClient.STATUS_RESOLVING, HTTPClient.STATUS_CONNECTING]):
		return BROKEN
	if http.get_status() != HTTPClient.STATUS_CONNECTED:
		return BROKEN
	var headers := PackedStringArray(["Content-Type: application/json"])
	if key != "":
		headers.append("Authorization: Bearer " + key)
	if once != "":
		headers.append("Idempotency-Key: " + once)
	var kind := HTTPClient.METHOD_GET if method == "GET" else HTTPClient.METHOD_POST
	if http.request(kind, "/v1" + path, headers, "" if body == null else JSON.stringify(body)) != OK:
		return BROKEN
	if not await _while(http, [HTTPClient.STATUS_REQUESTING]) or not http.has_response():
		return BROKEN
	if "text/event-stream" in str(http.get_response_headers_as_dictionary().get("Content-Type", "")).to_lower():
		return await _events(http)
	return await _whole(http)


func _place() -> Dictionary:
	var tls := url.begins_with("https://")
	var rest := url.trim_prefix("https://").trim_prefix("http://").trim_suffix("/")
	var parts := rest.split(":")
	var port := int(parts[1]) if parts.size() > 1 else (443 if tls else 80)
	return {"tls": tls, "host": parts[0], "port": port}


# Polls once a frame while the connection is in one of these states; false when it broke.
func _while(http: HTTPClient, states: Array) -> bool:
	while http.get_status() in states:
		if http.poll() != OK:
			return false
		await get_tree().process_frame
	return true


func _whole(http: HTTPClient) -> Variant:
	var bytes := PackedByteArray()
	while http.get_status() == HTTPClient.STATUS_BODY:
		http.poll()
		bytes.append_array(http.read_response_body_chunk())
		await get_tree().process_frame
	var read: Variant = JSON.parse_string(bytes.get_string_from_utf8())
	var status := http.get_response_code()
	if status < 400:
		return BROKEN if read == null else read
	var told: Variant = read.get("error", {}) if read is Dictionary else {}
	var wait := float(http.get_response_headers_as_dictionary().get("Retry-After", "0"))
	return {"error": told, "status": status, "wait": wait}


# Bytes are cut at line ends only: a letter may come in two chunks.
func _events(http: HTTPClient) -> Variant:
	var bytes := PackedByteArray()
	var kind := ""
	while http.get_status() == HTTPClient.STATUS_BODY:
		http.poll()
		bytes.append_array(http.read_response_body_chunk())
		var end := bytes.find(10)
		while end >= 0:
			var line := bytes.slice(0, end).get_string_from_utf8().strip_edges()
			bytes = bytes.slice(end + 1)
			end = bytes.find(10)
			if line.begins_with("event:"):
				kind = line.substr(6).strip_edges()
			elif line.begins_with("data:"):
				var data: Dictionary = JSON.parse_string(line.substr(5))
				if kind == "done":
					return data
				if kind == "error":
					return {"error": data, "status": data.get("status", 503), "wait": data.get("retry_after", 0.0)}
				_tell(kind, data)
		await get_tree().process_frame
	return BROKEN


func _tell(kind: String, data: Dictionary) -> void:
	if kind == "state":
		decided.emit(data)
	elif kind == "text":
		spoke.emit(data.text)

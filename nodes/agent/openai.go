package agent

import (
	"dagrun.dev/nodes/agent/internal/transcript"
	"dagrun.dev/nodes/internal/shape"
)

// openai returns the chat completions API, which many servers offer, or the Responses API.
func openai(api string) httpAPI {
	a := httpAPI{
		base: "https://api.openai.com/v1",
		keys: []apiKey{{"OPENAI_API_KEY", "Authorization", "Bearer "}},
		path: "/chat/completions", body: chatBody, format: &transcript.Chat,
	}
	if api == "responses" {
		a.path, a.body, a.format = "/responses", responsesBody, &transcript.Responses
	}
	return a
}

// cacheKey has requests that begin alike go to one server, which knows the beginning. Servers of others refuse unknown
// fields.
func cacheKey(q *question, body map[string]any) map[string]any {
	if len(q.blocks) > 1 && q.set.BaseURL == "" && q.set.Cache != "off" {
		body["prompt_cache_key"] = "dagrun-" + digest(q.system + q.blocks[0])[:40]
	}
	return body
}

// openaiParts are content parts of one of the two APIs. A mark is what models since gpt-5.6 want at the end of what
// they are to keep; others keep what they like by themselves.
func openaiParts(text, image string, parts ...contentPart) (list []any) {
	for _, p := range parts {
		m := map[string]any{"type": text, "text": p.text}
		if url := "data:" + p.media + ";base64," + p.data; p.media != "" && image == "image_url" {
			m = map[string]any{"type": image, "image_url": map[string]any{"url": url}}
		} else if p.media != "" {
			m = map[string]any{"type": image, "image_url": url}
		}
		if p.mark {
			m["prompt_cache_breakpoint"] = map[string]any{"mode": "explicit"}
		}
		list = append(list, m)
	}
	return list
}

func chatBody(q *question, c *content) map[string]any {
	system, user := any(q.system), any(q.prompt())
	if c.system.mark {
		system = openaiParts("text", "image_url", c.system)
	}
	if !c.plain() {
		user = openaiParts("text", "image_url", c.parts...)
	}
	list := []any{map[string]any{"role": "system", "content": system}, map[string]any{"role": "user", "content": user}}
	if q.system == "" {
		list = list[1:]
	}
	body := map[string]any{
		"model": q.set.Model, "stream": true, "stream_options": map[string]any{"include_usage": true}, "messages": list,
	}
	limit := "max_completion_tokens"
	if q.set.BaseURL != "" {
		limit = "max_tokens" // the name that servers of others know
	}
	put(body, limit, q.set.MaxOutputTokens)
	if sh := q.set.native(); sh != nil {
		body["response_format"] = map[string]any{"type": "json_schema", "json_schema": strictFormat(sh)}
	}
	return cacheKey(q, body)
}

func responsesBody(q *question, c *content) map[string]any {
	body := map[string]any{"model": q.set.Model, "stream": true, "store": false, "input": q.prompt()}
	if !c.plain() {
		body["input"] = []any{map[string]any{"role": "user", "content": openaiParts("input_text", "input_image", c.parts...)}}
	}
	put(body, "instructions", q.system)
	put(body, "max_output_tokens", q.set.MaxOutputTokens)
	if sh := q.set.native(); sh != nil {
		format := strictFormat(sh)
		format["type"] = "json_schema"
		body["text"] = map[string]any{"format": format}
	}
	return cacheKey(q, body)
}

// strictFormat asks for an answer of a shape; the name has no meaning.
func strictFormat(sh *shape.Shape) map[string]any {
	return map[string]any{"name": "answer", "strict": true, "schema": sh.Strict(true)}
}

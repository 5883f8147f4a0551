package agent

import (
	"dagrun.dev/nodes/agent/internal/transcript"
)

// anthropic speaks the Messages API.
var anthropic = httpAPI{
	base: "https://api.anthropic.com",
	keys: []apiKey{{"ANTHROPIC_API_KEY", "X-Api-Key", ""}, {"ANTHROPIC_AUTH_TOKEN", "Authorization", "Bearer "}},
	path: "/v1/messages", fixed: map[string]string{"Anthropic-Version": "2023-06-01"},
	body: messagesBody, format: &transcript.Messages,
}

// messagesMost is the longest answer in tokens where the settings name none: the API wants a number.
const messagesMost = 32000

// messagesBody asks without thinking: that is off unless params turn it on.
func messagesBody(q *question, c *content) map[string]any {
	message := map[string]any{"role": "user", "content": q.prompt()}
	if !c.plain() {
		message["content"] = messagesBlocks(q, c.parts...)
	}
	body := map[string]any{
		"model": q.set.Model, "max_tokens": q.set.MaxOutputTokens, "stream": true, "messages": []any{message},
	}
	switch {
	case c.system.mark:
		body["system"] = messagesBlocks(q, c.system)
	case q.system != "":
		body["system"] = q.system
	}
	if sh := q.set.native(); sh != nil {
		body["output_config"] = map[string]any{"format": map[string]any{"type": "json_schema", "schema": sh.Strict(false)}}
	}
	return body
}

// messagesBlocks are content blocks. One with a mark is kept, with all before it, for five minutes or an hour since it
// was last read; up to its model's least length (1,024 to 4,096 tokens) the service overlooks the mark.
func messagesBlocks(q *question, parts ...contentPart) (blocks []any) {
	for _, p := range parts {
		b := map[string]any{"type": "text", "text": p.text}
		if p.media != "" {
			source := map[string]any{"type": "base64", "media_type": p.media, "data": p.data}
			b = map[string]any{"type": "image", "source": source}
		}
		if p.mark {
			kept := map[string]any{"type": "ephemeral"}
			if q.set.Cache == "1h" {
				kept["ttl"] = "1h"
			}
			b["cache_control"] = kept
		}
		blocks = append(blocks, b)
	}
	return blocks
}

//go:build realcli

package agent

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// A manyAPI speaks enough of the Messages, Responses and Gemini APIs to try every real agent with the same cases. The
// first part of the path chooses the behaviour.
type manyAPI struct {
	mu     sync.Mutex
	bodies []string // of the requests for an answer, in order
	// calls are the tool calls that behaviour "tools" asks for first: name and arguments, by protocol.
	calls map[string][][2]any
}

func (f *manyAPI) taken() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := f.bodies
	f.bodies = nil
	return list
}

func (f *manyAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	body := string(raw)
	protocol := ""
	switch {
	case strings.HasSuffix(r.URL.Path, "/v1/messages"):
		protocol = "claude"
	case strings.HasSuffix(r.URL.Path, "/responses"):
		protocol = "codex"
	case strings.Contains(r.URL.Path, "enerateContent"):
		protocol = "gemini"
	}
	if r.Method != http.MethodPost || protocol == "" {
		http.NotFound(w, r)
		return
	}
	f.mu.Lock()
	f.bodies = append(f.bodies, body)
	first := len(f.bodies) == 1
	f.mu.Unlock()
	behaviour := strings.Split(r.URL.Path, "/")[1]
	if behaviour == "503" {
		w.Header().Set("content-type", "application/json")
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded","code":503,"status":"UNAVAILABLE"}}`)
		return
	}
	var events []m
	if behaviour == "tools" && first {
		events = f.toolCalls(protocol)
	} else {
		events = f.text(protocol, behaviour)
	}
	w.Header().Set("content-type", "text/event-stream")
	for _, e := range events {
		data, _ := json.Marshal(e)
		if e["type"] != nil {
			fmt.Fprintf(w, "event: %s\n", e["type"])
		}
		fmt.Fprintf(w, "data: %s\r\n\r\n", data)
	}
	if behaviour == "cut" {
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

var manyUsage = m{"input_tokens": 12, "output_tokens": 7, "input_tokens_details": m{"cached_tokens": 0}, "output_tokens_details": m{"reasoning_tokens": 0}, "total_tokens": 19}

func (f *manyAPI) text(protocol, behaviour string) []m {
	const text = "```html\n<!DOCTYPE html><html><body><h1>done</h1></body></html>\n```"
	switch protocol {
	case "claude":
		model := "claude-sonnet-4-5"
		if behaviour == "switch" {
			model = "claude-haiku-4-5"
		}
		events := []m{messageStart(model), {"type": "content_block_start", "index": 0, "content_block": m{"type": "text", "text": ""}},
			{"type": "content_block_delta", "index": 0, "delta": m{"type": "text_delta", "text": text}}}
		if behaviour == "cut" {
			return events
		}
		return append(events, m{"type": "content_block_stop", "index": 0}, m{"type": "message_delta", "delta": m{"stop_reason": "end_turn"}, "usage": manyUsage}, m{"type": "message_stop"})
	case "codex":
		events := []m{{"type": "response.created", "response": m{"id": "r"}},
			{"type": "response.output_item.done", "output_index": 0, "item": m{"type": "message", "role": "assistant", "id": "m", "content": []m{{"type": "output_text", "text": text}}}}}
		if behaviour == "cut" {
			return events[:1]
		}
		return append(events, m{"type": "response.completed", "response": m{"id": "r", "usage": manyUsage}})
	}
	return []m{{"candidates": []m{{"content": m{"role": "model", "parts": []m{{"text": text}}}, "finishReason": "STOP", "index": 0}},
		"usageMetadata": m{"promptTokenCount": 12, "candidatesTokenCount": 7, "totalTokenCount": 19}, "modelVersion": "gemini-2.5-pro"}}
}

func messageStart(model string) m {
	return m{"type": "message_start", "message": m{"id": "m", "type": "message", "role": "assistant", "model": model, "content": []m{}, "stop_reason": nil, "usage": manyUsage}}
}

func (f *manyAPI) toolCalls(protocol string) (events []m) {
	var parts []m
	switch protocol {
	case "claude":
		events = []m{messageStart("claude-sonnet-4-5")}
	case "codex":
		events = []m{{"type": "response.created", "response": m{"id": "r"}}}
	}
	for i, call := range f.calls[protocol] {
		args, _ := json.Marshal(call[1])
		id := fmt.Sprintf("call%d", i)
		switch protocol {
		case "claude":
			events = append(events, m{"type": "content_block_start", "index": i, "content_block": m{"type": "tool_use", "id": id, "name": call[0], "input": m{}}},
				m{"type": "content_block_delta", "index": i, "delta": m{"type": "input_json_delta", "partial_json": string(args)}}, m{"type": "content_block_stop", "index": i})
		case "codex":
			events = append(events, m{"type": "response.output_item.done", "output_index": i, "item": m{"type": "function_call", "id": id, "call_id": id, "name": call[0], "arguments": string(args)}})
		case "gemini":
			parts = append(parts, m{"functionCall": m{"name": call[0], "args": call[1]}})
		}
	}
	switch protocol {
	case "claude":
		return append(events, m{"type": "message_delta", "delta": m{"stop_reason": "tool_use"}, "usage": manyUsage}, m{"type": "message_stop"})
	case "codex":
		return append(events, m{"type": "response.completed", "response": m{"id": "r", "usage": manyUsage}})
	}
	return []m{{"candidates": []m{{"content": m{"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}},
		"usageMetadata": m{"promptTokenCount": 12, "candidatesTokenCount": 7, "totalTokenCount": 19}, "modelVersion": "gemini-2.5-pro"}}
}

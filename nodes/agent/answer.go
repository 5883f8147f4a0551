package agent

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/agent/capability"
	"dagrun.dev/nodes/internal/accept"
	"dagrun.dev/nodes/internal/markdown"
	"dagrun.dev/nodes/internal/shape"
)

// A shaped answer comes to us in one of two ways:
//
//   - native: the provider constrains the model, and the whole answer is the object;
//   - fenced: the prompt ends with the schema, and the answer with one fenced block of JSON, which is taken
//     off its text. So it is with providers that cannot constrain a model, and where text is wanted beside the object.
//
// A report file is beside the answer in any case: it is the text that goes through accept, and the answer is
// the object.
//
// What the real ones do, measured with claude 2.1.197 and 2.1.332 and codex 0.171.0 against loopback APIs
// (make test-real-cli):
//
//   - claude --json-schema offers the model a tool StructuredOutput and does not force it. A fitting call ends the run:
//     result and structured_output hold the object, stop_reason is tool_use, num_turns 2 even with --max-turns 1.
//     An unfit call is answered with an error, a mere text with a reminder, and the model is asked again, up to
//     MAX_STRUCTURED_OUTPUT_RETRIES (5) times in one attempt; then error_max_structured_output_retries, and
//     2.1.197 leaves the last call out of total_cost_usd. With --max-turns 1, which is what an agent without tools
//     gets, it asks once and ends with error_max_turns, its cost right: the object that did not fit stands in the
//     stream, and is judged here. With tools one correction within the attempt is allowed (2): it is cheaper than all
//     the work again.
//   - codex --output-schema sends text.format json_schema, strict, asks once and checks nothing. A refusal shows as an
//     answer without a message, a limit of length as turn.failed.
//   - The APIs refuse keywords that they cannot hold a model to, each others of them: see shape.Strict. Anthropic wants
//     objects closed and takes optional fields; OpenAI wants every field required.

// constrains reports whether a provider holds the model to a schema.
func constrains(provider string) bool {
	how := capability.How("answer", provider)
	return how != "" && how != capability.FencedBlock
}

// native returns the shape if the provider is to constrain the model to it.
func (s *settings) native() *shape.Shape {
	if s.shape == nil || s.Answer.Block || !constrains(s.Provider) || s.text && s.Report == "" {
		return nil
	}
	if s.Provider != "claude" && !s.shape.Closed() { // claude checks what a tool was given, the others constrain
		return nil
	}
	return s.shape
}

// instruction is what the prompt ends with where the answer is to end with a block.
func (s *settings) instruction() string {
	if s.shape == nil || s.native() != nil {
		return ""
	}
	return "\n\n---\nEnd your answer with exactly one block of JSON, fenced by a line ```json before it and a line ``` " +
		"after it, and nothing behind it. Use such a block nowhere else. The JSON is one object that is valid by this " +
		"JSON Schema:\n\n" + s.shape.String() + "\n"
}

// A shapeStep takes the object of an answer: its fields become values. It stands before the steps of accept.
type shapeStep struct {
	set   *settings
	reply *reply
	// instead are the values for an answer without a good object.
	instead []byte
}

// Apply takes the object off the answer.
func (a shapeStep) Apply(st *accept.State) error {
	object, err := a.object(st)
	if err != nil {
		return &nodes.Error{Category: "bad_answer", Message: err.Error()}
	}
	for name, v := range object {
		if v != nil {
			st.Values[name] = v
		}
	}
	if a.set.Answer.Record != "" {
		st.Note("quality", a.set.Answer.Record, object)
	}
	switch {
	case a.set.text && strings.TrimSpace(st.Answer) == "":
		return &nodes.Error{Category: "no_artifact", Message: "the answer has no text beside its object"}
	case !a.set.text && a.set.To != "":
		st.Artifacts[a.set.To], err = shape.Canonical(object)
		if a.set.Answer.Name != "" {
			st.Schemas[a.set.To] = a.set.Answer.Name
		}
	}
	return err
}

func (a shapeStep) object(st *accept.State) (map[string]any, error) {
	if a.instead != nil {
		return a.set.shape.Parse(a.instead, "else")
	}
	said := st.Answer
	if a.reply.FromFile {
		said = a.reply.Said
	}
	raw := a.reply.Object
	if raw == nil {
		native := a.set.native() != nil
		block, rest, err := lastBlock(said)
		switch {
		case err != nil && native: // it was not asked for a block
			raw = []byte(said)
		case err != nil:
			return nil, err
		default: // servers that take no notice of a schema often answer with a block
			raw = []byte(block)
			if !native && !a.reply.FromFile {
				st.Answer = rest
			}
		}
	}
	return a.set.shape.Parse(raw, "answer")
}

// lastBlock takes the fenced block of JSON off the end of an answer. An answer that is one object and nothing else
// needs no fence. A string of JSON holds no line break, so no line within a block looks like its fence. Blocks in the
// model's thinking are drafts and do not count; where thinking has no end, a draft cannot be told from the answer.
func lastBlock(text string) (block, rest string, err error) {
	text, cut := markdown.Said(text)
	if text = markdown.TrimBlank(text); cut {
		return "", "", errors.New("the thinking in the answer is never closed")
	}
	if strings.HasPrefix(text, "{") {
		return text, "", nil
	}
	lines := strings.Split(text, "\n")
	var fence markdown.Fence
	begin, blocks := -1, 0
	for i, line := range lines {
		if f, ok := markdown.OpenFence(line); ok && f.Language() == "json" {
			fence, begin = f, i
			blocks++
		}
	}
	last := len(lines) - 1
	end := slices.IndexFunc(lines[begin+1:], fence.Closes) + begin + 1
	switch {
	case blocks == 0:
		return "", "", errors.New("the answer does not end with a fenced block of JSON: " +
			"want a line ```json, the object, and a line ```")
	case blocks > 1:
		return "", "", fmt.Errorf("the answer has %d fenced blocks of JSON; want exactly one, at its end", blocks)
	case end == begin:
		return "", "", errors.New("the fenced block of JSON is cut: the line ``` that ends it is missing")
	case end < last:
		return "", "", errors.New("text follows the fenced block of JSON; want the block at the end of the answer")
	}
	return strings.Join(lines[begin+1:end], "\n"), strings.TrimRight(strings.Join(lines[:begin], "\n"), " \t\r\n"), nil
}

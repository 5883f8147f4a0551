package shape

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func read(t *testing.T, schema string) *Shape {
	t.Helper()
	s, problems := Read(json.RawMessage(schema))
	if len(problems) > 0 {
		t.Fatalf("%s: %v", schema, problems)
	}
	return s
}

const review = `{"type": "object", "properties": {
	"decision": {"enum": ["RELEASE", "POLISH"]},
	"score": {"type": "number", "minimum": 0, "maximum": 4},
	"count": {"type": "integer"},
	"note": {"anyOf": [{"type": "string", "maxLength": 5}, {"type": "null"}]},
	"fixes": {"type": "array", "maxItems": 3, "items": {"type": "object", "properties": {
		"class": {"enum": ["A", "B"]}, "text": {"type": "string", "pattern": "^[a-z]+$"}, "line": {"type": "integer"}}, "required": ["class"]}}},
	"required": ["decision", "note"]}`

// an answer that does not fit is told in one line, by path, in one order.
func TestParse(t *testing.T) {
	s := read(t, review)
	for _, tt := range []struct{ answer, want string }{
		{`{"decision": "POLISH", "note": null}`, `{"decision":"POLISH","note":null}`},
		{` {"note": "a<b", "decision": "POLISH", "score": 3.50}` + "\n", `{"decision":"POLISH","note":"a<b","score":3.5}`},
		// W-6: whole numbers are exact, in lists too; 3.0 and 1e2 are some.
		{`{"decision": "POLISH", "note": null, "count": 9223372036854775807, "fixes": [{"class": "A", "line": 9007199254740993}]}`,
			`{"count":9223372036854775807,"decision":"POLISH","fixes":[{"class":"A","line":9007199254740993}],"note":null}`},
		{`{"decision": "POLISH", "note": null, "count": 9007199254740993.0}`, `{"count":9007199254740993,"decision":"POLISH","note":null}`},
		{`{"decision": "POLISH", "note": null, "count": -9.007199254740993e15}`, `{"count":-9007199254740993,"decision":"POLISH","note":null}`},
		{`{"decision": "POLISH", "note": null, "count": 3.0}`, `{"count":3,"decision":"POLISH","note":null}`},
		// K-1: a null stands for a field left out, where that may be.
		{`{"decision": "POLISH", "note": null, "score": null, "fixes": [{"class": "A", "line": null}]}`, `{"decision":"POLISH","fixes":[{"class":"A"}],"note":null}`},

		{`{"decision": "MAYBE", "note": null, "fixes": [{"class": "A"}, {"class": "C", "text": "X"}]}`,
			`answer.decision: want one of "RELEASE", "POLISH", got "MAYBE"; answer.fixes[1].class: want one of "A", "B", got "C"; answer.fixes[1].text: want a text that matches ^[a-z]+$, got "X"`},
		{`{"decision": "POLISH"}`, `answer: missing note`},
		{`{"decision": null, "note": null}`, `answer.decision: want one of "RELEASE", "POLISH", got null`},
		{`{"decision": "POLISH", "note": 3}`, `answer.note: want string, got number`},
		{`{"decision": "POLISH", "note": "sixsix"}`, `answer.note: maxLength: got 6, want 5`},
		{`{"decision": "POLISH", "note": null, "score": 4.5}`, `answer.score: maximum: got 4.5, want 4`},
		{`{"decision": "POLISH", "note": null, "score": "4"}`, `answer.score: want number, got string`},
		{`{"decision": "POLISH", "note": null, "count": 1.5}`, `answer.count: want integer, got number`},
		{`{"decision": "POLISH", "note": null, "count": 9223372036854775808}`, `answer is no JSON object: line 1, column 47: 9223372036854775808 does not fit 64 bits`},
		{`{"decision": "POLISH", "note": null, "count": 1e19}`, `answer.count: 1e+19 does not fit 64 bits`},
		{`{"decision": "POLISH", "note": null, "extra": 1}`, `answer: no field is named extra`},
		{`{"decision": "POLISH", "note": null, "decision": "RELEASE"}`, `answer is no JSON object: line 1, column 38`},
		{`{"decision": "POLISH", "note": nul`, `answer is no JSON object: line 1`},
		{`[]`, `answer: want a JSON object`},
		{`{} {}`, `answer is no JSON object`},
		{``, `answer is no JSON object`},
	} {
		object, err := s.Parse([]byte(tt.answer), "answer")
		if err != nil {
			if !strings.HasPrefix(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s:\ngot  %v\nwant %s", tt.answer, err, tt.want)
			}
			continue
		}
		if got, _ := Canonical(object); string(got) != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.answer, got, tt.want)
		}
	}
}

// A-1, K-1: which type each field gives, and which may be absent.
func TestOutputs(t *testing.T) {
	s := read(t, `{"type": "object", "required": ["a", "b", "c", "d", "e", "f"], "properties": {
		"a": {"type": "string"}, "b": {"type": "integer"}, "c": {"enum": [true]}, "d": {"anyOf": [{"type": "array"}, {"type": "null"}]},
		"e": {"type": ["number", "null"]}, "f": {"const": 3}, "g": {"type": "object"}}}`)
	got, _ := json.Marshal(s.Outputs())
	if want := `{"a":"string","b":"int","c":"bool","d":"list?","e":"number?","f":"int","g":"map?"}`; string(got) != want {
		t.Errorf("got %s want %s", got, want)
	}
	s = read(t, `{"type": "object", "properties": {"a": {"enum": ["x", "y", null]}, "b": {"type": "string"}, "c": {"enum": [1]}}}`)
	if got := s.Words(); len(got) != 1 || !slices.Equal(got["a"], []string{"x", "y"}) {
		t.Errorf("all that may be said: %v", got)
	}
}

// what goes to services that constrain a model holds nothing they refuse, and says the rest in words.
func TestStrict(t *testing.T) {
	s := read(t, `{"type": "object", "required": ["a"], "properties": {
		"a": {"type": "string", "minLength": 2, "description": "A name."}, "b": {"enum": [1, 2]}, "n": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]},
		"l": {"type": "array", "maxItems": 3, "items": {"type": "object", "title": "t", "properties": {"c": {"const": "x"}}}}}}`)
	if got, want := string(s.Strict(false)), `{"additionalProperties":false,"properties":{`+
		`"a":{"description":"A name. {\"minLength\":2}","type":"string"},"b":{"enum":[1,2],"type":"integer"},`+
		`"l":{"description":"{\"maxItems\":3}","items":{"additionalProperties":false,"properties":{"c":{"enum":["x"],"type":"string"}},"type":"object"},"type":"array"},`+
		`"n":{"anyOf":[{"description":"{\"minimum\":1}","type":"integer"},{"type":"null"}]}},"required":["a"],"type":"object"}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := string(s.Strict(true)), `{"additionalProperties":false,"properties":{`+
		`"a":{"description":"A name. {\"minLength\":2}","type":"string"},"b":{"anyOf":[{"enum":[1,2],"type":"integer"},{"type":"null"}]},`+
		`"l":{"anyOf":[{"description":"{\"maxItems\":3}","items":{"additionalProperties":false,"properties":{"c":{"anyOf":[{"enum":["x"],"type":"string"},{"type":"null"}]}},"required":["c"],"type":"object"},"type":"array"},{"type":"null"}]},`+
		`"n":{"anyOf":[{"description":"{\"minimum\":1}","type":"integer"},{"type":"null"}]}},"required":["a","b","l","n"],"type":"object"}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for schema, closed := range map[string]bool{
		`{"type": "object", "properties": {"a": {"type": "object", "properties": {}}}}`:                                                       true,
		`{"type": "object", "additionalProperties": true}`:                                                                                    false,
		`{"type": "object", "properties": {"a": {"type": "array", "items": {"type": "object", "additionalProperties": {"type": "string"}}}}}`: false,
	} {
		if read(t, schema).Closed() != closed {
			t.Errorf("%s: want closed %v", schema, closed)
		}
	}
}

// K-1: a mistake of a schema is one problem, whatever else JSON Schema would take in its place.
func TestReadSaysOneThing(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type": "object", "properties": {"a": {"type": "sting"}}}`:                    `[{properties.a.type want one of "array", "boolean", "integer", "null", "number", "object", "string", got "sting"}]`,
		`{"type": "object", "properties": {"a": {"type": "string", "minLength": "2"}}}`: `[{properties.a.minLength want integer, got string}]`,
		// Of equally near names the first in their order is named, each time.
		`{"type": "object", "required": ["aaa"], "properties": {"aae": {"type": "null"}, "aad": {"type": "null"}, "aac": {"type": "null"}, "aab": {"type": "null"}}}`: `[{required[0] "aaa" is not among the properties; did you mean "aab"?}]`,
	} {
		if _, problems := Read([]byte(schema)); fmt.Sprint(problems) != want {
			t.Errorf("%s:\ngot  %v\nwant %s", schema, problems, want)
		}
	}
}

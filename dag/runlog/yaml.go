package runlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"dagrun.dev/dag/report"
	"dagrun.dev/dag/run"
	"dagrun.dev/internal/disk"
)

// SaveSummary writes the summary of a run that has ended beside the logs as run-<id>.yaml.
func SaveSummary(o run.Options, s *report.Summary) error {
	own, err := run.OpenOwn(o)
	if err != nil {
		return err
	}
	defer own.Close()
	if err := own.MkdirAll(run.LogsDir); err != nil {
		return err
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return err
	}
	text, err := yamlText(raw)
	if err != nil {
		return err
	}
	return disk.WriteFile(own, run.LogsDir+"/run-"+s.RunID+".yaml", text)
}

// yamlText writes a JSON object as YAML blocks, fields in their order. Texts are in double quotes,
// as in JSON, which YAML reads alike.
func yamlText(raw []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var out bytes.Buffer
	if err := yamlValue(&out, dec, "", false); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// yamlValue writes the next value. inList says that it stands behind a dash: its first field then goes on
// the same line.
func yamlValue(out *bytes.Buffer, dec *json.Decoder, indent string, inList bool) error {
	tok, err := dec.Token()
	if err != nil {
		return err
	}
	delim, nested := tok.(json.Delim)
	switch {
	case !nested:
		raw, err := json.Marshal(tok)
		fmt.Fprintf(out, " %s\n", raw)
		return err
	case !dec.More():
		fmt.Fprintf(out, " %s\n", map[json.Delim]string{'{': "{}", '[': "[]"}[delim])
	case delim == '[':
		out.WriteByte('\n')
		for dec.More() {
			out.WriteString(indent + "-")
			if err := yamlValue(out, dec, indent+"  ", true); err != nil {
				return err
			}
		}
	default:
		if err := yamlFields(out, dec, indent, inList); err != nil {
			return err
		}
	}
	_, err = dec.Token()
	return err
}

func yamlFields(out *bytes.Buffer, dec *json.Decoder, indent string, inList bool) error {
	if !inList && out.Len() > 0 {
		out.WriteByte('\n')
	}
	for first := true; dec.More(); first = false {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		name, ok := key.(string)
		if !ok {
			return errors.New("a field without a name")
		}
		if first && inList {
			out.WriteByte(' ')
		} else {
			out.WriteString(indent)
		}
		out.WriteString(yamlName(name) + ":")
		if err := yamlValue(out, dec, indent+"  ", false); err != nil {
			return err
		}
	}
	return nil
}

// yamlName quotes a name that YAML could take for something else.
func yamlName(s string) string {
	for _, c := range s {
		if c != '_' && (c < 'a' || c > 'z') {
			return string(appendQuoted(nil, s))
		}
	}
	if s == "" || s == "y" || s == "n" || s == "yes" || s == "no" || s == "on" || s == "off" || s == "true" || s == "false" || s == "null" {
		return `"` + s + `"`
	}
	return s
}

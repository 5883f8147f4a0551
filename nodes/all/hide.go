package all

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strings"

	"dagrun.dev/nodes/internal/credential"
)

// hidden stands for a credential in what is shown.
const hidden = "[secret]"

// Hide returns settings as they may be shown: the values of members whose names declare credentials, and the passwords
// in addresses, are taken out. A name in secrets is no credential.
func Hide(with json.RawMessage) json.RawMessage {
	var v any
	from := json.NewDecoder(bytes.NewReader(with))
	from.UseNumber()
	if from.Decode(&v) != nil {
		return with
	}
	var out bytes.Buffer
	to := json.NewEncoder(&out)
	to.SetEscapeHTML(false)
	if err := to.Encode(hide(v, "")); err != nil {
		return with
	}
	return bytes.TrimSpace(out.Bytes())
}

func hide(v any, name string) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			if k != "secrets" {
				v[k] = hide(x, k)
			}
		}
	case []any:
		for i := range v {
			v[i] = hide(v[i], "")
		}
	case string:
		if credential.Named(name) && len(v) >= 8 && !strings.Contains(v, "${") {
			return hidden
		}
		if u, err := url.Parse(v); err == nil && u.User != nil {
			return strings.Replace(v, u.User.String(), hidden, 1)
		}
	}
	return v
}

// Package credential finds the values that are credentials among what a child or a request is given, so that the host
// masks them like declared secrets.
//
// A name declares them: that of a variable, a header or a parameter of an address which ends in one of a few words.
// What a specification lists in secrets does not come here; the host knows it already.
package credential

import (
	"net/url"
	"slices"
	"strings"

	"dagrun.dev/nodes"
)

// shortest is the least length of a value that is taken for a credential by its name alone.
const shortest = 8

// endings are how the names of credentials end.
var endings = []string{
	"key", "token", "secret", "password", "credential", "credentials",
	"authorization", "auth", "cookie", "signature", "sig",
}

// Named reports whether the value of a variable, header or parameter of this name is a credential.
func Named(name string) bool {
	return slices.ContainsFunc(endings, func(end string) bool { return strings.HasSuffix(strings.ToLower(name), end) })
}

// MaskEnv reports the credentials in a child's environment, which is written as NAME=value, to the host. Addresses
// in it are looked into: a proxy may have a password.
func MaskEnv(t *nodes.Task, env []string) {
	for _, pair := range env {
		name, value, _ := strings.Cut(pair, "=")
		if Named(name) {
			mask(t, value)
		}
		if strings.Contains(value, "://") {
			MaskURL(t, value)
		}
	}
}

// MaskURL reports the password and the credentials among the parameters of an address to the host.
func MaskURL(t *nodes.Task, address string) {
	u, err := url.Parse(address)
	if err != nil {
		return
	}
	if password, given := u.User.Password(); given {
		mask(t, password)
	} else if u.User != nil {
		mask(t, u.User.Username()) // a token, as some servers take it
	}
	for name, values := range u.Query() {
		if !Named(name) {
			continue
		}
		for _, value := range values {
			mask(t, value)
		}
	}
}

// MaskNamed reports the value of a header or a variable to the host when its name declares a credential, with and
// without the scheme before it.
func MaskNamed(t *nodes.Task, name, value string) {
	if !Named(name) {
		return
	}
	mask(t, value)
	if _, bare, scheme := strings.Cut(value, " "); scheme {
		mask(t, strings.TrimSpace(bare))
	}
}

func mask(t *nodes.Task, value string) {
	if len(value) >= shortest && t.Mask != nil {
		t.Mask(value)
	}
}

// Package deps holds module requirements until every package that needs them is written.
package deps

import (
	_ "cuelang.org/go/cue/load"
	_ "github.com/chromedp/chromedp"
	_ "github.com/google/cel-go/cel"
	_ "github.com/google/cel-go/ext"
	_ "github.com/gowebpki/jcs"
	_ "github.com/hashicorp/go-retryablehttp"
	_ "github.com/rogpeppe/go-internal/testscript"
	_ "github.com/santhosh-tekuri/jsonschema/v6"
	_ "github.com/sony/gobreaker/v2"
	_ "github.com/spf13/cobra"
	_ "golang.org/x/net/html"
	_ "golang.org/x/sys/unix"
	_ "gopkg.in/yaml.v3"
)

package evidence

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// signs are what some programs put before a message.
const signs = `^[\s\[✕✖✗■⚠\x{FE0F}⎿●·]*`

// stop ends a sentence that is a message of its own; words that go on with it make it prose: "Overloaded
// pages: none." Only such may follow as messages have.
const stop = `[ \t]*(?:$|[\r\n]|[^\w\s'"’?]|(?:by|at|due|resets?|please|try|until|after|to (?:access|use|make|continue)|for (?:this|the|your|quota|organization|requests?|model|\S*[\d/]\S*|\S+ (?:in|on|\())))`

// labels begin a message that is nothing but an error, told where an answer should stand.
var labels = regexp.MustCompile(`(?i)` + signs + `(?:` + strings.Join([]string{
	`[\w.]*(?:error|exception)\b\s*[:(]`,
	`(?:api )?error (?:code:? ?)?\(?[345]\d\d\b`,
	`error (?:calling|when|while|during|executing|running|connecting|loading|sending|reading|fetching|getting|generating|processing|communicating|authenticating|streaming|occurred)\b`,
	`fatal(?: error)?\b\s*[:\](]`,
	`failed to [^\n:.]{1,60}(?:[:(]|$|\n|\. *[^\s.])`,
	`failed to (?:authenticate|connect|fetch|load|refresh|start|parse|initiali[sz]e|log ?in|reach|spawn|send|read|call|open|write)\b[^\n:.]{0,60}\.`,
	`traceback \(most recent`,
	`please run /login`,
	`unexpected status \(?[345]\d\d\b`,
	`limit reached\b[^\n]{0,20}\bresets?\b`,
	`there(?:'|’)?s an issue with the selected model\b`,
	`codex ran out of room\b`,
	`we(?:'|’)?re currently experiencing high demand\b`,
	`your (?:workspace|account|organization|team) is out of credits?\b`,
	`you(?:(?:'|’)?ve| have)? (?:hit|reached|exceeded) (?:your|the|a|its) (?:[^.;:\n]|\.\d){0,40}\b(?:limits?|quota|cap|maximum|budget)(?:` + stop + `| (?:in|of|on|this|today|and)\b)`,
	`you (?:hit|reached|exceeded|have (?:hit|reached|exceeded|exhausted)) your (?:limits?|current quota|quota|capacity|daily|monthly|weekly)\b`,
	`your (?:\w+ )?limit (?:will reset|resets|has been|is reached|was reached|reached|exceeded)\b`,
	`(?:your|this) organization (?:has disabled|has been disabled|does not have access)`,
	`your (?:account|access token|refresh token|api key)\b[^.\n]{0,30} (?:could not be|has been|is|was) (?:refreshed|disabled|suspended|revoked|invalid|not)`,
	`(?:claude )?oauth (?:token|authentication)\b[^.\n]{0,40}\b(?:expired|revoked|invalid|not|failed|error|missing)\b`,
	`stream disconnected before\b`,
	`cached credentials are (?:not|invalid|expired)`,
	`please set an auth method`,
	`settings file is (?:corrupt|invalid|not|malformed|missing|unreadable)`,
	`unknown command\b\s*(?:$|[\r\n]|[:'"\x60/])`,
	`\{"error"`, `\{"type": ?"error"`,
}, "|") + `)`)

// sentences are such messages without a label: the whole of a line, or of what stands before a stop.
var sentences = regexp.MustCompile(`(?i)` + signs + `(?:` + strings.Join([]string{
	`(?:api|execution|stream|connection|internal server) error`,
	`not logged in`,
	`invalid (?:x-)?api[- _]?key(?: provided)?`,
	`credit balance (?:is )?too low`,
	`(?:claude|codex|gemini)[\w ]* (?:usage )?limit(?: reached| exceeded| hit)?`,
	`(?:usage|session|weekly|daily|monthly|rate|opus|sonnet|fable|haiku|\w+-hour|\w+ly)[ _-]limit (?:is |was |has been )?(?:reached|exceeded|hit)`,
	`rate[ -]limited`,
	`prompt is too long`,
	`request timed out`,
	`connection (?:refused|lost|closed|reset)(?: by peer)?`,
	`too many requests`,
	`(?:service (?:is )?(?:temporarily |currently )?)?(?:overloaded|unavailable)`,
	`quota exceeded`,
	`you(?:'|’)?re out of (?:extra usage|credits?|messages)`,
	`resource (?:has been )?exhausted`,
	`stream disconnected`,
	`exceeded retry limit`,
}, "|") + `)` + stop)

// exceptions are the names of exceptions with their modules, which libraries that speak HTTP leave as
// their only line.
var exceptions = regexp.MustCompile(signs + `(?:` +
	`(?:\w+\.)+\w*(?:Error|Exception|Timeout|Exhausted|Unavailable|Exceeded|Disconnected|Unauthenticated|Denied|TooManyRequests)` +
	`|(?:httpx|httpcore|requests|urllib3|aiohttp|google|grpc|openai|anthropic|litellm|botocore|asyncio|socket|ssl|http\.client)\.(?:\w+\.)*[A-Z]\w+` +
	`)[ \t]*(?:$|[:(])`)

const (
	// mostHead is the length up to which an answer can be nothing but an error message.
	mostHead = 1500
	// mostSentence is that length for a message without a label.
	mostSentence = 600
)

// Head reports whether a whole answer is nothing but an error message, or the page of a gateway that
// tells one. A page or a report that mentions one is not.
func Head(text string) bool {
	text = Clean(text)
	if gatewayStatus(text) != 0 {
		return true
	}
	if _, there := beforePage(text); there {
		return true
	}
	if len(text) > mostHead || strings.Contains(strings.ToLower(text), "<html") || strings.Count(text, "\n") >= 8 {
		return false
	}
	return labels.MatchString(text) || len(text) <= mostSentence && sentences.MatchString(text) ||
		!strings.Contains(text, "\n") && exceptions.MatchString(text)
}

var (
	pageStart = regexp.MustCompile(`(?i)<!doctype html|<html\b|<head>|<body\b|<center>`)
	// forwarded are words before a page that a client hands on: the status, and what it is called.
	forwarded = regexp.MustCompile(`(?i)` + signs + `(?:api error|(?:\w+\.)*\w*(?:error|exception)(?: code)?|http(?:/[\d.]+)?|unexpected status)[:\s]*\(?(?:4\d\d|5\d\d)\)?[:\s,-]*(?:(?:bad gateway|bad request|forbidden|unauthorized|not found|service (?:temporarily )?unavailable|gateway time-?out|internal server error|too many requests|request entity too large|payload too large|overloaded|server error|error|status code|response|body)[.:\s,-]*){0,3}["']?$`)
)

// beforePage returns the words of an error before the page of a gateway, where an answer begins with
// such: a client that hands on what it got. there is false for anything else; a page below words on a
// line of their own may be what was asked for.
func beforePage(text string) (said string, there bool) {
	at := pageStart.FindStringIndex(head(text, 400))
	if at == nil || at[0] == 0 || len(text) > 16<<10 {
		return "", false
	}
	said = text[:at[0]]
	if strings.ContainsAny(strings.TrimRight(said, "\r\n"), "\r\n") {
		return "", false
	}
	below := strings.HasSuffix(said, "\n")
	said = strings.TrimSpace(said)
	status := gatewayStatus(text[at[0]:])
	switch {
	case status != 0 && statusIn(said) == 0 && labels.MatchString(said):
		return said + " " + strconv.Itoa(status), true
	case forwarded.MatchString(said):
		return said, status != 0 || !below
	}
	return "", false
}

// TellsOf reports whether a line of a short text is an error message with known words: agents print
// their progress before it.
func TellsOf(text string) bool {
	text = Clean(text)
	if len(text) > mostHead {
		return false
	}
	for line := range strings.Lines(text) {
		if _, said := Word(line); said && Head(line) {
			return true
		}
	}
	return false
}

// TellsStatus reports whether a text is nothing but an error message that names a status.
func TellsStatus(text string) bool { return Head(text) && statusIn(text) != 0 }

// marks are a byte order mark and the sequences that colour a terminal.
var marks = regexp.MustCompile(`\x{FEFF}|\x1b\[[0-9;?]*[@-~]`)

// Clean returns text without byte order marks, colours, and what cannot be seen around it.
func Clean(text string) string { return strings.TrimFunc(marks.ReplaceAllString(text, ""), unseen) }

// unseen reports whether a character shows nothing: a blank, one without a width, a control character.
func unseen(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Variation_Selector) || strings.ContainsRune("\u034f\u115f\u1160\u2800\u3164\uffa0", r)
}

// gateway is the page with which something between here and the API answers.
var gateway = regexp.MustCompile(`(?is)^(?:<!doctype html[^>]*>)?\s*<html[^>]*>.*?<title>[^<]*?\b(403|429|5\d\d)\b[:|\s-]+(?:forbidden|too many|internal server|bad gateway|service|gateway|web server|origin|a timeout|unknown|overloaded|server error|site|error)[^<]*</title>`)

// gatewayMakers are words in the longer ones. Such a page with a design of its own may be what was
// asked for.
var gatewayMakers = regexp.MustCompile(`(?i)cloudflare|cf-error|akamai|cloudfront|imperva`)

// gatewayStatus returns the status that a gateway's page tells, 0 when text is something else.
func gatewayStatus(text string) int {
	bare := len(text) <= mostHead && !strings.Contains(strings.ToLower(text), "<style")
	if !bare && (len(text) > 16<<10 || !gatewayMakers.MatchString(text)) {
		return 0
	}
	m := gateway.FindStringSubmatch(head(text, 3000))
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1])
	return n
}

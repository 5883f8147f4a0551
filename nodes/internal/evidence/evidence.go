// Package evidence says what failure messages of model providers mean: which category, and how
// long to wait. It judges words and status codes only; it never takes a failure for a success.
package evidence

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"time"

	"dagrun.dev/internal/printable"
	"dagrun.dev/nodes"
)

// A Case is what is known of one failure. Fields beat words, and words in Text come in the order
// of their worth: the terminal event first, then other output.
type Case struct {
	Status int    // of HTTP; 0 = unknown
	HTML   bool   // the body was a page: a gateway spoke, not the API
	Text   string // what was said
	// Now and Zone are the runner's clock, for "resets 3pm"; Tries counts the starts of this
	// attempt's node, for waits that nobody gave a time for.
	Now   time.Time
	Zone  *time.Location
	Tries int
	// Else is the category when nothing is recognised; empty = "transient".
	Else string
}

// Error returns the failure. Its message is the line of Text that tells the category, else
// the first one, shortened.
func (c Case) Error() *nodes.Error {
	if status := gatewayStatus(Clean(c.Text)); status != 0 && (c.Status == 0 || c.Status == status) {
		c.Status, c.HTML, c.Text = status, true, "a gateway answered with its own page, "+strconv.Itoa(status)
	}
	if said, there := beforePage(Clean(c.Text)); there {
		c.HTML, c.Text = true, said+" (with a page of a gateway)"
	}
	e := &nodes.Error{Message: message(Clean(c.Text))}
	status := c.Status
	if status == 0 {
		status = statusIn(c.Text)
	}
	word, said := Word(c.Text)
	byStatus, known := Status(status, c.HTML)
	switch {
	case said && (!known || strong[word] || status == 400 && plain[word]):
		e.Category = word
	case known:
		e.Category = byStatus
	case c.Else != "":
		e.Category = c.Else
	default:
		e.Category = "transient"
	}
	e.Permanent = final[e.Category] || e.Category == "protocol" && known
	c.wait(e)
	return e
}

// wait fills in how long not to try. Plan limits wait until a moment and use no attempt.
func (c Case) wait(e *nodes.Error) {
	now := c.Now
	if now.IsZero() {
		now = time.Now()
	}
	zone := c.Zone
	if zone == nil {
		zone = time.Local
	}
	switch e.Category {
	case "quota_wait":
		until, ok := Reset(notYours.ReplaceAllString(head(c.Text, 16000), ""), now, zone)
		if !ok {
			until = now.Add(Backoff(c.Tries))
		}
		e.WaitUntil = until
	case "rate_limited", "transient":
		if d, ok := Delay(c.Text); ok {
			e.RetryAfter = d
		} else if at, ok := resetISO(c.Text, now, zone); ok && at.After(now) && at.Sub(now) < longest {
			e.RetryAfter = at.Sub(now)
		}
	}
}

// Backoff is the wait for a plan limit that names no time: one minute, doubling with each
// start, at most an hour.
func Backoff(tries int) time.Duration {
	d := time.Minute
	for ; tries > 1 && d < time.Hour; tries-- {
		d *= 2
	}
	return min(d, time.Hour)
}

// strong are the categories in which words say more than the status they came with: no
// money left is told as a bad request, a plan limit as too many requests.
var strong = map[string]bool{
	"billing": true, "quota_wait": true, "input_too_big": true, "truncated": true, "budget": true, "refused": true, "config": true,
}

// plain are the categories in which words say more than a status that says only that something is
// wrong with the request: some tell an invalid key, or throttling, so.
var plain = map[string]bool{"auth": true, "rate_limited": true}

// final are the categories in which the same question gets the same answer, and no person can change
// that without changing the question.
var final = map[string]bool{
	"input_too_big": true, "refused": true, "budget": true, "truncated": true, "spawn_failed": true,
}

// Status returns the category of an HTTP status. ok is false for 0 and for success.
func Status(status int, html bool) (category string, ok bool) {
	switch {
	case status == 403 && html:
		return "transient", true
	case status == 401, status == 403:
		return "auth", true
	case status == 402:
		return "billing", true
	case status == 404, status == 407, status == 501, status >= 300 && status < 400:
		return "config", true
	case status == 408, status == 409, status == 425, status == 499:
		return "transient", true
	case status == 413:
		return "input_too_big", true
	case status == 429:
		return "rate_limited", true
	case status == 451:
		return "refused", true
	case status >= 400 && status < 500:
		return "protocol", true
	case status >= 500 && status < 600:
		return "transient", true
	}
	return "", false
}

// statusWords find a status in a message: "API Error: 529", "unexpected status 401", "(429)", `"code":429`,
// "google.api_core.exceptions.ResourceExhausted: 429".
var statusWords = regexp.MustCompile(`(?im)(?:error:?|^(?:\w+\.)+\w+:|status(?:[ _]?code)?"?:?|last status:|http(?:/[\d.]+)?|\bcode"?:|\bgot|returned|rejected|responded with|said)\s*\(?([345]\d\d)\b`)

func statusIn(text string) int {
	m := statusWords.FindStringSubmatch(head(text, 4000))
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1])
	return n
}

// words are tried in order: what only a person can mend comes before what time mends.
var words = []struct {
	category string
	re       *regexp.Regexp
}{
	{"billing", regexp.MustCompile(`(?i)credit balance|insufficient[ _]?(?:quota|credits?|funds|balance)|billing[ _](?:error|hard|details|is|not|issue|problem)|check your plan|payment required|out of credits?|requires more credits|(?:extra usage|usage credits?) (?:is|are) required|no credits|prepaid|account (?:is )?(?:suspended|past due)|spend(?:ing)? (?:limit|cap)`)},
	{"budget", regexp.MustCompile(`(?i)exceeded usd budget|max(?:imum)?[ _]budget|budget_exhausted|budget ?exceeded|error_max_turns|max(?:imum)?[ _](?:session[ _])?(?:number of[ _])?turns|turn[ _]limit`)},
	{"quota_wait", regexp.MustCompile(`(?i)usage[ _]limit|(?:session|weekly|daily|monthly|hourly|plan|message|5-hour|five-hour)[ _]limit|(?:hit|reached) your (?:(?:usage|session|weekly|daily|monthly|hourly|plan|message|account|team|organization|\w+-hour) |(?:opus|sonnet|haiku|fable)(?: \d+(?:\.\d+)?)? )?limit|out of extra usage|limit (?:will )?resets?|limit reached[^.\n]{0,40}resets?|"resets_(?:at|in_seconds)"|(?:daily|monthly|weekly) quota|quota (?:will )?resets?`)},
	{"input_too_big", regexp.MustCompile(`(?i)prompt is too long|prompt_too_long|input is too (?:long|large)|context[ _]length|maximum context|context_length_exceeded|context ?window ?exceeded|too many (?:input )?tokens|request[ _]too[ _]large|exceeds? (?:the )?context (?:limit|length|window)|(?:exceeds|over|above) the (?:maximum|context|model)[^.\n]{0,40}(?:tokens|context|length|input)|input exceeds|exceeds \d+ ?[mk]i?b|entity too large|ran out of (?:room|space) in`)},
	{"truncated", regexp.MustCompile(`(?i)output token (?:maximum|limit)|max_output_tokens|maximum output|context window limit|finish_?reason"?: ?"?(?:length|max_tokens)`)},
	{"refused", regexp.MustCompile(`(?i)(?:can't|cannot|can not|unable to) (?:help|assist|respond|comply|continue)[^.\n]{0,20} th(?:is|at)\b|content[ _](?:policy|filter)|safety (?:policy|filter|system)|violat(?:e|es|ed|ing|ion|ions)[^.\n]{0,40}polic|stop_reason"?: ?"?refusal`)},
	{"auth", regexp.MustCompile(`(?i)not logged in|please run /login|log ?in again|login (?:required|expired)|sign(?:ing)? in again|authentication cancelled|has disabled [^.\n]{0,40}access|(?:organization|account) has been (?:disabled|deactivated|banned)|not allowed for this organization|re-?authenticate|failed to authenticate|(?:invalid|incorrect|missing|no|bad|expired) (?:x-)?api[- _]key|api[- _]key (?:is )?(?:not valid|invalid|missing|expired|not set|not found)|authentication[ _]?(?:error|failed|required)|unauthori[sz]ed|unauthenticated|permission_?(?:error|denied)|(?:session|token|credentials?)[^.\n]{0,30}(?:expired|revoked|rejected|invalid)|(?:expired|revoked|invalid) (?:oauth )?(?:session|token|credentials?)|refresh token|invalid_grant|set an auth method`)},
	{"config", regexp.MustCompile(`(?i)model_not_found|issue with the selected model|maximum allowed number of output tokens|(?:no such|unknown|invalid|unsupported) model|model[^.\n]{0,60}(?:does not exist|not found|may not exist|not supported|is not available)|not_?found_?error|self[- ]signed certificate|unable to (?:verify|get)[^.\n]{0,40}certificate|cert_[a-z_]+|(?:unknown|unexpected|unrecogni[sz]ed|invalid) (?:option|argument|flag|subcommand|command)|option [^.\n]{0,60} is invalid|argument [^.\n]{0,60} is invalid|requires? --|input must be provided|only whitespace|no prompt`)},
	{"rate_limited", regexp.MustCompile(`(?i)rate.?limit|too many requests|\b429\b|overloaded|at capacity|over capacity|capacity (?:limit|exceeded|constraints?)|resource[ _]?(?:has been )?exhausted|throttl|quota exceeded|exceeded your (?:current )?quota`)},
	{"transient", regexp.MustCompile(`(?i)connection_failed|econn(?:refused|reset|aborted)|etimedout|enotfound|eai_again|epipe|socket hang up|fetch failed|connection (?:refused|reset|lost|dropped|closed|error|timed)|disconnected|network (?:error|is unreachable)|timed? ?out|internal ?server ?error|bad gateway|service ?unavailable|connectionerror|gateway time|temporar|try again|empty or malformed|server[ -](?:side|error)|api_error|execution error|unexpected end of|error sending request|deadline ?exceeded|\b(?:client(?:payload|os|connector\w*)|(?:remote)?protocol|read|write|connect|chunkedencoding|maxretry)error\b|incompleteread\b|(?-i:\bUNAVAILABLE\b)`)},
}

// Word returns the category that the words of a message stand for.
func Word(text string) (category string, ok bool) {
	text = notYours.ReplaceAllString(head(text, 16000), "")
	if category := googleQuota(text); category != "" {
		return category, true
	}
	for _, w := range words {
		if !w.re.MatchString(text) {
			continue
		}
		if w.category == "quota_wait" && rate.MatchString(text) && !plan.MatchString(text) {
			continue // "you've reached your rate limit" is not a plan limit
		}
		return w.category, true
	}
	return "", false
}

// notYours are words that say which limit it is not, and warnings of one that is near.
var notYours = regexp.MustCompile(`(?i)\bnot your usage limit\b|\bapproaching [^\n]{0,40}\blimits?\b[^\n]*|\bused \d\d?% of [^\n]{0,40}\blimits?\b[^\n]*`)

var (
	rate = regexp.MustCompile(`(?i)rate[ -]?limit`) // not the API's word rate_limit_error, which comes with plan limits too
	plan = regexp.MustCompile(`(?i)usage[ _]limit|session|weekly|5-hour|five-hour|plan|"resets_`)
)

// denied are the words of an agent that could not go on without a permission that nobody gives.
var denied = regexp.MustCompile(`(?i)(?:i )?(?:need|require|don(?:'|’)?t have|do not have|wasn(?:'|’)?t (?:given|granted)|lack)[^.\n]{0,20} permissions?\b|permission to (?:read|write|use|edit|run|access)|grant (?:me )?(?:the )?permission|(?:tool|permission)[^.\n]{0,30} (?:was|were|been) denied`)

// Denied reports whether an answer says that a tool was refused to it.
func Denied(text string) bool { return len(text) <= mostHead && denied.MatchString(text) }

// message returns the line that tells what is wrong, or the first one; in the place of JSON the message
// inside.
func message(text string) string {
	text = told(strings.TrimSpace(text), 3)
	lines := strings.Split(head(text, 16000), "\n")
	line := strings.TrimSpace(lines[0])
	if whole, ok := Word(text); ok {
		for _, l := range lines {
			if word, ok := Word(l); ok && word == whole {
				line = strings.TrimSpace(l)
				break
			}
		}
	}
	if line == "" {
		line = "no message"
	}
	return printable.Clip(line, 300)
}

// told puts the message of an error object, which may be one as text again, in the object's place.
func told(text string, depth int) string {
	at := strings.IndexByte(text, '{')
	if at < 0 || depth == 0 {
		return text
	}
	var body struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
	}
	d := json.NewDecoder(strings.NewReader(text[at:]))
	if d.Decode(&body) != nil {
		return text
	}
	var inner struct{ Message, Type string }
	_ = json.Unmarshal(body.Error, &inner)
	for _, said := range []string{inner.Message, body.Message, inner.Type} {
		if said != "" {
			before := strings.TrimRight(text[:at], "[ ")
			behind := strings.TrimLeft(text[at+int(d.InputOffset()):], "]")
			return strings.TrimSpace(before + " " + told(strings.TrimSpace(said), depth-1) + behind)
		}
	}
	return text
}

func head(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}

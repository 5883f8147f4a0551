package verdict

import (
	"regexp"
	"strings"

	"dagrun.dev/nodes/internal/markdown"
)

// What a reviewer writes right below the decision gives its reasons. They may not say that the work fails, waits or
// is not meant to go out yet.
const (
	works = `this, it, we, page, site, website, design, version, draft, build, work, gates?, checks?, tests?, criteri(?:on|a), [a-z]+-[0-9]+, tier [0-9]+, release, launch, approval, decision, verdict`

	// being stands between the work and what is wrong with it.
	being = `is, are, still, also, clearly, simply, just, really, has, have, been, remains?, stays?, seems?, feels?, looks?`

	// wrongs is what is wrong with it.
	wrongs = `fails?, failed, failing, unsafe, unready, unfinished, untested, premature, too early, incomplete, unacceptable, unfit, broken, terrible, awful, dreadful, unusable, unreadable, red,
		(?:an? )?(?:complete |total )?(?:mess|disaster|failure), conditional, provisional, tentative, pending, on hold, blocked, forced,
		(?:isn't|n't|not) (?:yet )?(?:there|ready|finished|done|good enough|final),
		(?:needs?|requires?) (?:(?:more|further|some|much|a lot of|a little|serious) )*(?:work|fix\w*|another|one more|to be ` + fixed + `|rework\w*|revisions?|improvements?|changes|time),
		(?:must|has to|have to) be ` + fixed

	// fixed is what must be done then.
	fixed = `(?:fixed|redone|reworked|resolved|addressed|corrected|changed|replaced|repaired|rebuilt|rewritten|finished|removed|improved|revised)`
)

var (
	// faulted is a clause about the work; what is wrong with it is the group.
	faulted = regexp.MustCompile(`(?i)(?:^\W*(?:\w+ +){0,2}|[,;:(—–] *|\b(?:and|but|so|because|since|as|still|two|three|one|some|most) +)` +
		`(?:(?:the|this|that|our|its|one|two|three|four|some|several|most|a|an|my) +)?(?:\w+ +)?(?:` + alternatives(works) + `)(?:'s|'re)?(?: +(?:` + alternatives(being) + `))* +(` + alternatives(wrongs) + `)\b`)
	// hindered names what stands in the way.
	hindered = regexp.MustCompile(`(?i)\b(?:there(?:'s| is| are)(?: still)? +(?:\w+ +){0,3}|(?:is|are|remains?|has|have)(?: still)? (?:an? |the |one |two )?(?:hard |clear |real )?)(blockers?|blocking|show-?stoppers?)\b`)
	// firstly says what comes before.
	firstly = regexp.MustCompile(`(?i)\b(?:(?:must|has to|have to|needs? to) be ` + fixed + ` (first)|(then) (?:the |we )?(?:release|ship|publish|launch))\b`)
	// elliptic is a condition and nothing else: "Once the header is fixed", but not "If you want more, look at the footer".
	elliptic = regexp.MustCompile(`(?i)^\W*(?:but )?(?:only )?(?:if(?: and only if)?|once|when|after|assuming|provided|as long as|so long as|(?:on|under) (?:the )?condition|contingent|subject to|pending|upon|following|depending|until|unless)\b[^,?]*$`)

	// doubting oneself, refusing, and naming another as the one who decides.
	ownDoubts = []*regexp.Regexp{
		regexp.MustCompile(`(?i)\bI (?:still |also |do )?have (?:\w+ )?(doubts|reservations|concerns|objections|misgivings)\b`),
		regexp.MustCompile(`(?i)\bI(?:'m| am) (?:\w+ )?((?:not|un) *(?:(?:entirely|quite|really|fully|yet|so|at all) )?(?:sure|certain|convinced|decided|confident|persuaded))\b` +
			`(?: *$| *[.,;!—–]| about (?:this|it|that|the (?:release|decision|verdict))\b| (?:that )?(?:this|it|the page) (?:is|should)\b| whether\b)`),
		regexp.MustCompile(`(?i)\bI(?:'d| would| will|'ll| must|'m| am)?(?: have to| rather| hereby)? (wait|hold|see another|block|veto|reject|deny|decline|send)(?:ing)?(?: +(?:it|this|that|the page|off|back|another|on)\b| *$| *[.,;])`),
		regexp.MustCompile(`(?i)\bI(?:'d| would) (wait)\b`),
		regexp.MustCompile(`(?i)\bI (object|disagree|dissent|refuse|abstain|vote against|vote no|(?:doubt|question) (?:it|this|that)|can only)\b`),
		regexp.MustCompile(`(?i)\bI ((?:can't|cannot|can not|could not|couldn't|don't|do not) (?:\w+ )?(?:stand behind|justify|support|defend|vouch|back|endorse))\b`),
		regexp.MustCompile(`(?i)\bI(?:'m| am) (?:only |just )?(joking|kidding)\b`),
		regexp.MustCompile(`(?i)\b((?:instructed|told|asked|forced|wants?|made|obliged)(?: on)? me|I (?:was|am|have been) (?:told|asked|instructed|forced)|(?:brief|prompt|page) (?:demands|wants|requires) (?:this|that|it))\b`),
	}

	// sentBack asks for more work.
	sentBack = regexp.MustCompile(`(?i)^\W*(?:(?:so|but|and|please|now|honestly) *,? +)?(?:(?:send|give|hand|take|bring) (?:it|this|that|the page) back|back to (?:the|work)|` +
		`(?:keep|leave|take) (?:it|this|the page) (?:offline|down|unpublished|private|back)|(?:it|this|the page) (?:should|must) (?:stay|remain) (?:in (?:staging|draft)|offline|unpublished|private|a draft|where it is)|` +
		`let's wait|(?:please )?(?:block|pull|kill|stop|reject|hold|shelve|scrap) (?:it|this|that)\W*$|(?:another|one more) (?:round|cycle|pass|iteration)|wait (?:for|another|until)|(?:this|that) (?:would|could|might) (?:be|have been)|yeah, right|close,? but no\b)`)

	question = regexp.MustCompile(`[^.!?;]*\?`)

	// footnote is the mark of one.
	footnote = regexp.MustCompile(`^ *(?:\\ |\[\^?[0-9]+\]:? *|\([0-9]\) +|[¹²³†‡] *)`)

	// unseen says that the work was not looked at: then no decision about it is one.
	unseen = regexp.MustCompile(`(?i)\bI (?:could not|couldn't|cannot|can't|have not|haven't|did not|didn't|was not able to|was unable to) (?:\w+ )?` +
		`(?:open|see|view|look(?:ed)?(?: at)?|load|read|access|seen|opened|viewed) (?:(?:the|any|its|of|these|those) )*(?:page|screenshots?|images?|pictures?|artifact|site|files?)\b`)
)

// reasons returns the sentences below the decision, "?" for a question, up to what has a form of its own: a heading, a list, a table, a rule.
func (d *decisionRule) reasons(lines []string, label int) []string {
	const most = 40 // lines
	var out []string
	for i := label + 1; i < min(len(lines), label+most); i++ {
		line := strings.TrimSpace(lines[i])
		unwrapped, _ := unwrap(bare(line))
		switch _, item := markdown.Item(line); {
		case line == "":
			continue
		case out == nil && d.begins(unwrapped), out == nil && strings.Trim(line, "-=_ ") == "":
			continue // the value below its label
		case item, heads.MatchString(line), strings.HasPrefix(line, "#"), strings.HasPrefix(line, "|"), strings.Trim(line, "-=_ ") == "":
			return out
		}
		if i > label+1 && len(out) > 0 && strings.TrimSpace(lines[i-1]) != "" {
			line = out[len(out)-1] + " " + line
			out = out[:len(out)-1]
		}
		line = question.ReplaceAllString(said.ReplaceAllString(line, " "), "?. ")
		for _, s := range sentence.Split(line, -1) {
			if s = strings.TrimSpace(s); s != "" {
				out = append(out, s)
			}
		}
	}
	return out
}

// unreasoned returns the reason that does not fit the most lenient value. The first sentence, when it is short, and footnotes
// are read as if they stood behind the value.
func (d *decisionRule) unreasoned(lines []string, label int) (text string, ok bool) {
	const short = 6 // words
	for i, s := range d.reasons(lines, label) {
		if s == "?" || since.MatchString(s) || criterion.MatchString(s) && !applies.MatchString(s) {
			continue
		}
		s = notOne.ReplaceAllString(s, "no")
		note := footnote.FindString(s)
		s = s[len(note):]
		remark := note != "" || i == 0 && len(strings.Fields(s)) <= short && !strings.Contains(s, ":")
		if remark && (weakened(" — "+s) || denied.MatchString(" — "+s)) || faults(s) {
			return s, true
		}
	}
	return "", false
}

// verdictAlone reports whether a line of its own, wherever it stands, says no more than that the work is not good enough.
func verdictAlone(line string) bool {
	const short = 5 // words
	return len(strings.Fields(line)) <= short && bare(line) == strings.TrimSpace(line) && !since.MatchString(line) && faults(line)
}

// faults reports whether a sentence says that something is wrong, and nothing in its clause denies that.
func faults(s string) bool {
	const clauseOnly = 9 // words
	if sentBack.MatchString(s) || elliptic.MatchString(s) && len(strings.Fields(s)) <= clauseOnly || firstly.MatchString(s) && !twice.MatchString(s) {
		return true
	}
	if sparingRe.MatchString(s) {
		return false
	}
	for _, re := range append([]*regexp.Regexp{faulted, hindered}, ownDoubts...) {
		if m := re.FindStringSubmatchIndex(s); m != nil && !twice.MatchString(clause(s[:m[2]])) && !noneBehind.MatchString(s[m[1]:]) {
			return true
		}
	}
	return false
}

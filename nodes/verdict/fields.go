package verdict

import (
	"regexp"
	"slices"
	"strings"
)

// A field is a line such as "Blockers: none" or a row of two cells. Some answer a question that the decision answers, too.
var (
	fieldRe = regexp.MustCompile(`^[\[( ]*([A-Za-z][A-Za-z'/;. -]{0,40}?) *(?:[:=?|]|->|=>|→| [—–-] )[:=| ]*(.*)$`)

	// asksLet asks whether the work may go out: a no denies it. asksHeld asks the opposite.
	asksLet = regexp.MustCompile(`(?i)^(?:(?:is|it|this|that|the|page|to|for|be|can|may|should|do|i|we|go|okay?|yet|now|safe|fit|good|clear(?:ed)?|ok) +)*(?:ready|approved?|approval|ship(?:pable)?|shipped|released?|releasable|publish(?:ed|able)?|launch|deploy|merge|sign[ -]?off|go[ -]?live|go)` +
		`(?:[ -]+(?:ready|to|for|it|this|now|yet|be|release|released|ship|shipped|shipping|launch|publish|published|publication|production|live|go|approved|granted))*$`)
	asksHeld = regexp.MustCompile(`(?i)^(?:blocked|on hold|held|withheld|rejected|conditional|provisional|tentative|failed|draft|unsure)$`)
	// asksFaults asks what stands in the way: anything but nothing does.
	asksFaults = regexp.MustCompile(`(?i)^(?:(?:open|remaining|hard|release) +)*(?:blockers?|blocking (?:issues?|points?|items?|problems?|defects?)|show-?stoppers?|must-?fix(?:es)?|must fix|conditions?|prerequisites?|reservations?|caveats?|provisos?|assumptions?|restrictions?|(?:failed|failing|open) (?:gates?|checks?|tests?|criteria|questions?)|(?:soul )?violations?)$`)
	// asksState asks how things stand.
	asksState = regexp.MustCompile(`(?i)^(?:(?:the|my|final|overall|own|current|page|release|gates?) +)*(?:state|gates?|` + titles + `)$`)
	// asksMore adds to the decision.
	asksMore = regexp.MustCompile(`(?i)^(?:p\.? ?s\.?|n\.? ?b\.?|notes?|footnote|disclaimer|remark|important|warning|attention|edit|update|however|but)$`)
	// asksTrust asks how sure the reviewer is.
	asksTrust = regexp.MustCompile(`(?i)^(?:(?:my|the|overall) +)*(?:confidence|certainty)(?: level)?$`)

	yes     = regexp.MustCompile(`(?i)^(?:yes|y|true|x|1|✓|✅|☑|\[x\])\b|^(?:✓|✅|☑)`)
	nothing = regexp.MustCompile(`(?i)^[(\["'*_ ]*(?:no\b|none|nothing|zero|0\b|n/?a\b|nil|null|-+ *$|—|–|\? *$|∅|✓|✅|all (?:are |were )?(?:closed|fixed|resolved|met|cleared|satisfied)|(?:resolved|cleared|closed|met|fixed|satisfied)\b|keine|aucun|not? any|without)`)
	refuses = regexp.MustCompile(`(?i)^["'“(\[]*(?:` + anyDenial + `)` + denialEnd)
	weakly  = regexp.MustCompile(`(?i)^(?:none|no|very low|low|lowish|weak|poor|little|zero|[0-4]?[0-9] *%|0?[.,][0-4]|[0-4] */ *10|[12] */ *5)\b`)
)

// fieldAgainst reports whether line i is a field whose answer speaks against letting the work out.
func fieldAgainst(lines []string, i int) bool {
	key, value, ok := fieldOf(lines[i])
	if !ok {
		return false
	}
	if value == "" {
		value = under(lines, i)
	}
	switch {
	case value == "":
		return false
	case asksLet.MatchString(key):
		return refuses.MatchString(value)
	case asksHeld.MatchString(key):
		return yes.MatchString(value)
	case asksFaults.MatchString(key):
		return !nothing.MatchString(value)
	case asksState.MatchString(key):
		return refuses.MatchString(value) || len(strings.Fields(value)) <= 6 && doubtful(value)
	case asksMore.MatchString(key):
		return len(strings.Fields(value)) <= 10 && (doubtful(value) || hedged.MatchString(value))
	case asksTrust.MatchString(key):
		return weakly.MatchString(value)
	}
	return false
}

func fieldOf(line string) (key, value string, ok bool) {
	m := fieldRe.FindStringSubmatch(strings.Trim(bare(strings.Trim(line, "| ")), "| "))
	if m == nil || since.MatchString(m[1]) || older.MatchString(m[1]) {
		return "", "", false
	}
	return strings.TrimSpace(m[1]), strings.TrimSpace(m[2]), true
}

// under returns what stands right under a line that has nothing behind its colon, when that is an item of a list.
func under(lines []string, i int) string {
	for _, line := range lines[i+1 : min(len(lines), i+3)] {
		if strings.TrimSpace(line) == "" {
			continue
		}
		if item := bare(line); item != strings.TrimSpace(line) && !strings.HasPrefix(line, "#") {
			return item
		}
		return ""
	}
	return ""
}

// introduced reports whether the line before a decision says that it is not the review's own: quoted, an example, a wish.
func introduced(lines []string, i int) bool {
	n := i - 1
	for n >= 0 && strings.TrimSpace(lines[n]) == "" && n > i-3 {
		n--
	}
	if n < 0 {
		return false
	}
	before := strings.TrimSpace(lines[n])
	if before == "" || strings.HasPrefix(before, "|") || strings.HasPrefix(before, "#") {
		return false
	}
	last := before[len(before)-1]
	leadsOn := last == ':' || last == ',' || n == i-1 && !slices.Contains([]byte(`.!?;)"`), last)
	parts := sentence.Split(strings.TrimRight(before, ":, "), -1)
	return leadsOn && introduces.MatchString(parts[len(parts)-1])
}

// introduces is for the sentence before a decision.
var introduces = regexp.MustCompile(`(?i)^\W*(?:if|when|once|unless|had|were|assuming|suppose|hypothetically|say|for (?:example|instance))\b|\b(?:an? (?:example|sample)|example output|sample output|the (?:template|format|form)|the page|(?:the )?(?:footer|header|hero|artifact|text|prompt|brief|page|draft|comment)) *$|` +
	`\b(?:template|prompt|brief|page|footer|header|hero|artifact|text|comment|it) (?:says|said|reads|reading|contains|claims|shows|states|has|holds|wants|demands|asks)\b|\b(?:asked|told|instructed|wanted|expected) me to\b|\b(?:would|could|might) (?:be|read|have been|say|write)\b|\b(?:quot(?:e|es|ed|ing)|supposed|previous|last (?:cycle|round|time)|earlier)\b|^\W*(?:example|sample|template|format)(?: output| line| answer)?$`)

package verdict

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What stands behind the most lenient value, in its sentence and in those that follow.
var (
	hedged    = behindSigns(hedges)
	doubt     = phrases(doubting)
	vouches   = regexp.MustCompile(`(?i)^ *(?:` + alternatives(vouching) + `)\b`)
	condition = regexp.MustCompile(`(?i)(?:[,;:(\[|…—–]| - ) *(?:and +|then +)?(` + alternatives(conditions) + `)\b( +(?:[0-9]+|two|three|four|five|six|minor|cosmetic)\b)?`)
	reversal  = regexp.MustCompile(`(?i)(?:[,;:.(\[|!?…—–]| - ) *(?:(?:` + alternatives(reversals) + `)\b|wait(?: *$| *[.,:;!?…—–]| (?:for|until|till|another)\b))`)

	// restricted is all of the remark right behind it, or its first words: a part of a release, or none that is meant.
	restricted = regexp.MustCompile(`(?i)^[ ,;:(\[{/—–-]+(?:(?:just|only|very|for|in|as|an?|the|with|rather|quite|still|to) +)*(?:limited|partial|partially|beta|alpha|internal|internally|staging|preview|soft|draft|sample|example|template|placeholder|copied|quoted|quote|discussion|review|broken|invalid|disputed|contested|theory|theoretically|principle|ironic|ironically|sarcasm|sarcastic|joke|lol|s|test|50/50|fifty-fifty|leaning|blockers?)(?: +(?:only|release|launch|rollout|open|from .*))*(?: *$|[)\].,;:!—–])|` +
		`^[ ,;:(\[—–-]+(?:as (?:the page|it|they|said|stated|instructed|told|claimed|quoted|requested|demanded|you|per)\b|per |says |quoting |copied |quoted )|\bonly *[)\].]* *$`)
	trails = regexp.MustCompile(`^ *(?:[+&~]|-ish\b|(?:\.{3,}|…|[-–—#<]+) *$)`)

	// remark is one in brackets or behind a comma; a short one must hold a word that vouches for the value.
	remark  = regexp.MustCompile(`^ *(?:,? *[(\[]([^()\[\]]*)[)\]]|[,;] *([^.!,;]+)(?:[.!,;]|$))`)
	vouched = regexp.MustCompile(`(?i)\b(?:no|none|nothing|zero|0|without|all|every|each|was|up from|previously|rationale|reasons?|notes|scores?|confidence|congratulations|optional|cosmetic|not|final|finally|confirmed|approved|unanimous|unanimously|unconditional|unconditionally|ready|go|ship|pass|passes|passed|yes|ok|okay|high|clean|great|excellent|good|strong|solid|superb|perfect|beautiful|met|meets|holds?|intact|safe|sure|green|done|complete|clear|cleared|best|better|well|work|now|today|immediately|this|because|since|the decision)\b|[0-9] *(?:/|of|%)|^ *(?:[a-z]+ +)?#?[0-9]+ *$|^[^a-z]*$|^[ x]*$`)

	// none stands before a word of doubt, in its clause, and takes it away, but not when unless stands there, too.
	none       = regexp.MustCompile(`(?i)\b(?:no|nothing|none|zero|0)\b[^,;:.!?()—–]*$|\b(?:without|not?|never|hardly)(?: \w+)? *$|n't(?: \w+)? *$`)
	unless     = regexp.MustCompile(`(?i)\b(?:but|except|until|doubt|unless)\b`)
	noneBehind = regexp.MustCompile(`(?i)^ +(?:(?:at|in|on) +)?(?:no|nothing|none)\b`)
	sparingRe  = phrases(sparing)
	little     = regexp.MustCompile(`(?i)\b(?:cosmetic|optional|nits?|minor|taste)\b`)

	// spared says that another value is not meant.
	spared = regexp.MustCompile(`(?i)\b(not|was|from|previously|earlier|before|last|formerly|instead of|rather than|over|above|than|beyond|no longer)( +an?| +the| +to)?[ :]*$`)
	// goesOn is a line below that goes on with the sentence, or a paragraph below that begins with a reservation.
	goesOn = regexp.MustCompile(`(?i)^\n?(not\b|but\b|however\b|unless\b|except\b|provided\b|only (if|when|after|once)\b|wait(?: *$| *[.,:;!…—–-]| (?:for|until|till)\b)|actually\b|correction\b|no[.,!]|aber\b|mais\b|pero\b|pending\b|subject to\b|on second thought\b)|^(if|once|when|after|assuming|conditional)\b`)
)

// weakened reports whether what follows the most lenient value leaves a doubt: doubt is never
// resolved towards it.
func weakened(rest string) bool {
	if hedged.MatchString(rest) || restricted.MatchString(rest) || trails.MatchString(rest) {
		return true
	}
	r, _ := utf8.DecodeRuneInString(strings.TrimLeft(rest, ` "'”’»)]>}`))
	if (unicode.IsLetter(r) || unicode.IsDigit(r)) && (!vouches.MatchString(rest) || unicode.IsDigit(r)) {
		return true
	}
	own, _ := ownSentence(rest)
	return strings.Contains(own, "?") || doubtful(own) || conditional(own) || reversal.MatchString(rest)
}

// ownSentence cuts a remark behind the sentence that the value stands in.
func ownSentence(rest string) (own, others string) {
	own, others, _ = strings.Cut(strings.ReplaceAll(rest, "!", "."), ". ")
	return own, others
}

// followed reports whether a short sentence behind the most lenient value's own leaves a doubt: "RELEASE. First fix the header."
func followed(rest string) bool {
	const most = 8 // words
	_, others := ownSentence(rest)
	return slices.ContainsFunc(sentence.Split(others, -1), func(s string) bool { return len(strings.Fields(s)) <= most && doubtful(s) })
}

// doubtful reports whether a sentence holds a word of doubt that it does not take away: "risky", but not "nothing risky is left".
func doubtful(sentence string) bool {
	for _, m := range doubt.FindAllStringIndex(sentence, -1) {
		before, behind := sentence[:m[0]], sentence[m[1]:]
		taken := none.MatchString(before) && !unless.MatchString(none.FindString(before)) || noneBehind.MatchString(behind) || sparingRe.MatchString(clauseAround(sentence, m[0], m[1]))
		small := strings.HasPrefix(strings.ToLower(sentence[m[0]:m[1]]), "remain") && little.MatchString(clauseAround(sentence, m[0], m[1]))
		if !taken && !small {
			return true
		}
	}
	return false
}

// conditional reports whether a clause of a sentence begins with a condition; "after three rounds" is none.
func conditional(sentence string) bool {
	for _, m := range condition.FindAllStringSubmatch(sentence, -1) {
		if counted := m[2] != "" && (strings.EqualFold(m[1], "after") || strings.EqualFold(m[1], "only")); !counted {
			return true
		}
	}
	return false
}

// remarked reports whether a short remark in brackets stands behind the most lenient value that does not vouch for it.
func remarked(rest string) bool {
	const most = 4 // words
	m := remark.FindStringSubmatch(rest)
	if m == nil {
		return foreignLetters(rest)
	}
	said := m[1] + m[2]
	return len(strings.Fields(said)) <= most && !vouched.MatchString(said) || foreignLetters(rest)
}

// foreignLetters reports whether a remark is in letters that no list of words here holds, whatever it says.
func foreignLetters(rest string) bool {
	own, _ := ownSentence(rest)
	latin := func(r rune) bool { return unicode.Is(unicode.Latin, r) }
	return strings.ContainsFunc(own, unicode.IsLetter) && !strings.ContainsFunc(own, latin)
}

// otherwise reports whether another value is named behind the most lenient one, as more than a comparison.
func (d *decisionRule) otherwise(rest string) bool {
	at := 0
	for _, w := range strings.FieldsFunc(rest, func(r rune) bool { return !wordRune(r) }) {
		n := at + strings.Index(rest[at:], w)
		at = n + len(w)
		if w = strings.Trim(w, "-_."); w != d.Values[0] && slices.Contains(d.Values, w) && !spared.MatchString(rest[max(0, n-40):n]) {
			return true
		}
	}
	return false
}

// clause returns the last clause of a text.
func clause(s string) string { return s[strings.LastIndexAny(s, ",:(")+1:] }

// clauseAround returns the clause of a sentence that holds what stands at [from, to).
func clauseAround(s string, from, to int) string {
	end := len(s)
	if n := strings.IndexAny(s[to:], ",;:()—–"); n >= 0 {
		end = to + n
	}
	return clause(s[:from]) + s[from:end]
}

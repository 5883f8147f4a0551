package extract

import (
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/net/html"

	"dagrun.dev/nodes/internal/accept"
)

// placeholders returns the phrases of a page that say that a part was left out: in its comments,
// in those of its style sheets and scripts, and in visible text. Text in <pre>, <code> and the
// like is a sample and does not count, nor does a phrase of one word: "... the rest unchanged" does,
// "prices unchanged since May" does not.
func placeholders(page string) []string {
	f := finder{}
	z := html.NewTokenizer(strings.NewReader(page))
	sample := 0
	for {
		token := z.Next()
		switch token {
		case html.ErrorToken:
			f.settle(true)
			for _, p := range f.due {
				if p.due > 0 {
					f.add(p.comment)
				}
			}
			if sample > 0 { // it is never closed: then all that follows is no sample
				f.found = append(f.found, f.sampled...)
			}
			return f.found
		case html.CommentToken:
			f.settle(true)
			f.hidden(string(z.Text()), sample > 0)
		case html.TextToken:
			text := string(z.Text())
			f.closing = f.closing && !strings.Contains(text, "\n")
			f.text(text, sample > 0)
		case html.StartTagToken:
			name, attrs, isData := element(z)
			f.started(name, attrs)
			f.element = name
			if isSample[name] {
				sample++
			}
			if isData {
				f.element = "data"
			}
		case html.EndTagToken:
			f.settle(true)
			name, _ := z.TagName()
			if isSample[string(name)] {
				sample = max(0, sample-1)
			}
			f.element = ""
		default:
			f.settle(false)
		}
		if token != html.TextToken {
			f.closing = token == html.EndTagToken
		}
	}
}

var isSample = map[string]bool{"pre": true, "code": true, "samp": true, "kbd": true, "textarea": true, "title": true, "xmp": true}

// isRoom holds the elements that an ellipsis alone does not fill.
var isRoom = map[string]bool{"head": true, "body": true, "main": true, "article": true, "section": true, "header": true, "footer": true}

// element reads a start tag: its name, what its attributes call it, and whether it is a script that holds data.
func element(z *html.Tokenizer) (name, called string, isData bool) {
	tag, more := z.TagName()
	name = string(tag)
	var b strings.Builder
	for more {
		var key, val []byte
		key, val, more = z.TagAttr()
		v := strings.ToLower(string(val))
		switch string(key) {
		case "class", "id", "role", "aria-label", "aria-labelledby":
			b.WriteString(v + " ")
		case "type":
			isData = name == "script" && !runs(v)
		}
	}
	return name, b.String(), isData
}

// runs reports whether a script is one, by its type.
func runs(t string) bool {
	return t == "" || t == "module" || strings.Contains(t, "script") || strings.Contains(t, "babel") || strings.Contains(t, "jsx")
}

// finder collects phrases.
type finder struct {
	found   []string
	element string // whose text comes next
	sampled []string
	pending string   // a comment that counts only when nothing follows in its place
	bare    bool     // it says that something is as it was and not what: then what follows on another line is not in its place
	parts   []string // it says what: then nothing else is in its place
	depth   int      // elements since
	due     []promise
	closing bool // an end tag stands before on the same line: a comment names what it ends
}

func (f *finder) add(phrase string) { f.found = addTo(f.found, phrase) }

func addTo(found []string, phrase string) []string {
	const most = 20
	if len(found) < most {
		found = append(found, accept.Quote(phrase))
	}
	return found
}

// settle decides about a pending comment.
func (f *finder) settle(nothing bool) {
	if nothing && f.pending != "" {
		f.add(f.pending)
	}
	f.pending, f.bare, f.parts, f.depth = "", false, nil, 0
}

// started decides about a pending comment by the element that begins. One that the comment does not name may be a wrapper of the one
// that it names.
func (f *finder) started(name, called string) {
	const most = 3
	begun := f.parts != nil && begins(f.parts, name, called)
	f.promised(name, called, begun)
	switch f.depth++; {
	case f.parts == nil || begun:
		f.settle(false)
	case f.depth == most || name == "p":
		f.settle(true)
	}
}

// promised notes the number of parts that a comment says follow, or counts one.
func (f *finder) promised(name, called string, begun bool) {
	kind := kindOf(name, called)
	for i := range f.due {
		if f.due[i].kind == kind {
			f.due[i].due--
		}
	}
	const most = 50
	if n := promises(f.pending); begun && n > 1 && len(f.due) < most {
		f.due = append(f.due, promise{f.pending, kind, n - 1})
	}
}

// hidden looks at a comment of the page.
func (f *finder) hidden(comment string, sample bool) {
	switch p := newPhrase(comment); {
	case sample:
		if p.leavesOut() || p.saysNoMore() {
			f.sampled = addTo(f.sampled, comment)
		}
	case p.leavesOut() || p.toBeFilled():
		f.add(comment)
	case p.saysNoMore():
		f.pending, f.bare = comment, true
	case p.mayLeaveOut() && !f.closing && !strings.HasPrefix(strings.TrimSpace(comment), "/"):
		f.pending, f.parts = comment, p.standsFor()
	}
}

// text looks at text: of a style sheet, of a script, or visible.
func (f *finder) text(text string, sample bool) {
	if strings.TrimFunc(text, unicode.IsSpace) == "" {
		if f.bare && strings.Contains(text, "\n") {
			f.settle(true)
		}
		return
	}
	switch {
	case f.element == "script" || f.element == "style":
		for _, c := range comments(text, f.element == "script") {
			p := newPhrase(c.text)
			if p.leavesOut() || p.toBeFilled() || p.mayLeaveOut() && (c.last || f.element == "style" && p.elsewhere(c.next)) {
				f.add(c.text)
			}
		}
	case f.element == "data":
	case sample:
		f.settle(false)
		if visible(text) {
			f.sampled = addTo(f.sampled, text)
		}
	default:
		f.settle(f.parts != nil)
		if visible(text) || escaped(text) || isRoom[f.element] && hollow(text) {
			f.add(text)
		}
	}
}

// A phrase is a comment or a text, cut into words.
type phrase struct {
	text     string // lower case, single blanks
	words    []string
	leads    bool // begins with an ellipsis
	trails   bool // ends with one
	brackets bool // as a whole in brackets
	only     bool // nothing but an ellipsis
}

// mostPhrase is the longest text that may be a phrase; longer ones are real content.
const mostPhrase = 200

func newPhrase(s string) phrase {
	if len(s) > 4*mostPhrase {
		return phrase{}
	}
	s = strings.ToLower(strings.Join(strings.Fields(strings.ReplaceAll(s, "…", "...")), " "))
	s = strings.TrimFunc(s, func(r rune) bool { return strings.ContainsRune("=*/#~!-–—_ |<>", r) })
	p := phrase{}
	s = strings.ReplaceAll(s, ". . .", "...")
	if len(s) > 2 && strings.IndexByte("[({", s[0]) >= 0 && strings.IndexByte("])}", s[len(s)-1]) >= 0 {
		p.brackets = true
		s = strings.Trim(s, "[](){} */")
	}
	s = restAPIRe.ReplaceAllString(s, "api")
	p.text = s
	p.leads = strings.HasPrefix(s, "...")
	p.trails = strings.HasSuffix(s, "...")
	p.only = p.leads && strings.Trim(s, ". ") == ""
	p.words = strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\'' })
	if len(s) > mostPhrase {
		return phrase{}
	}
	return p
}

func (p *phrase) has(set map[string]bool) bool {
	for _, w := range p.words {
		if set[w] {
			return true
		}
	}
	return false
}

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

var (
	// what is left out
	restWords = set("rest remaining remainder reste resto restliche restlicher restlichen übrige übrigen")
	// what was there, or else is there
	existingWords = set("existing other previous")
	// that it is left out
	omitWords = set("omitted elided snipped")
	// that it is said to be as it was
	keepWords = set("unchanged unmodified untouched unaltered unverändert inchangé inchangée inalterado inalterada invariato invariata")
	keepRe    = regexp.MustCompile(`\b(as (before|above|is|it was|they were|previously|in (the )?(original|previous|first|last|earlier|v[0-9]))|(stays?|remains?|kept|keep|is|are) (the same|identical|as (is|they are|it is))|no changes?|not (changed|modified)|same (as|code|content|styles?|markup|pattern)|identical to|bleib(t|en) wie|wie (gehabt|bisher|zuvor|oben)|sin cambios|senza modifiche)\b`)
	omitRe    = regexp.MustCompile(`\b(for brevity|left out|not shown|not repeated|to save space)\b`)
	brevityRe = regexp.MustCompile(`\b(for brevity|to save space)\b|^(snip|snipped)$`)
	elseRe    = regexp.MustCompile(`\b(everything|all|nothing) else\b`)
	moreRe    = regexp.MustCompile(`\b(continue[sd]?|[0-9]+ lines|and so on|previous(ly)?|same|more)\b`)
	goesOnRe  = regexp.MustCompile(`\b(continue|repeat|follow)\b`)
	addedRe   = regexp.MustCompile(`\b(rest|remaining|remainder|existing|previous|more|additional|similar|truncated|shortened|abbreviated)\b`)
	// the same in letters that \b does not know
	foreignRe = regexp.MustCompile(`(其余|其他|其它|剩余).*(不变|保持|相同|省略|一致)|(以下|此处|内容|代码)省略|^\(?(省略|中略|後略|后略|略)\)?$|以下同じ|変更なし|без изменений|остальн.*(так же|как было|прежн)`)
	// parts of a page
	partRe = regexp.MustCompile(`\b(sections?|code|contents?|styles?|css|html|markup|pages?|body|header|footer|nav|scripts?|functions?|rules?|parts?|components?|elements?|items?|rows?|lines|layout|cards?|articles?|chapters?|paragraphs?)\b`)
	todoRe = regexp.MustCompile(`^(todo|fixme|tbd)\b[ :\-(]*.{0,20}?\b(add|insert|implement|fill|complete|write|include|put|replace|finish|create|build|rest|remaining)\b`)
	yourRe = regexp.MustCompile(`\byour\b.{0,40}\bhere\b`)
	fillRe = regexp.MustCompile(`\b(insert|add|put|place|paste)\b.{0,60}\bhere\b|\bgoe?s? here\b|^(todo|tbd|etc|see above|and so on|abbreviated|truncated|shortened|cut( here)?|(existing|previous|original) [a-z]+ here|(your )?(content|text|code)( here)?)\.?$|^placeholder( for\b.*)?$|^copy from (the )?(previous|original)`)
	bodyRe = regexp.MustCompile(`^(your (content|text|code|title|heading|description|paragraph)|(existing )?(content|text|code)) (goes )?here$`)
)

var (
	restAPIRe = regexp.MustCompile(`\brest(ful)?[ -](api|call|endpoint|client|request|response|route|server|service|interface|url)s?\b`)
	// what a program does with something, told of it or asked of it
	doesRe  = regexp.MustCompile(`^(leaves|keeps|lets|returns|preserves|retains|makes|copies|ensures|forwards|yields|holds)\b`)
	whenRe  = regexp.MustCompile(`\b(when|whenever|if|unless|while)\b`)
	aboutRe = regexp.MustCompile(`^(and |the |all |any |of )*(rest|remaining|remainder|everything|others?|existing)\b`)
	doRe    = regexp.MustCompile(`^(leave|keep|let|return|preserve|retain|make|copy|ensure|forward|yield|hold)\b`)
	doneRe  = regexp.MustCompile(`\b(is|are|was|were|gets?|be|being)( [a-z]+ly)? ([a-z]+ed|sent|set|given|taken|drawn|read|written|run|put)\b`)
	staysRe = regexp.MustCompile(`^(retained|preserved|skipped|shortened|abbreviated|truncated|removed|hidden|copied|reused|included|repeated|needed|required)$`)
	// a thing that is no part of a page: "keep the value", "leave the rest of the list"
	objectRe = regexp.MustCompile(`^[a-z]+ (the |all |any |its |their |this |that |other |remaining |existing |previous |rest of the |rest of |old |current )+([a-z]+) (unchanged|unmodified|untouched|unaltered|as|the|in)\b`)
	pageRe   = regexp.MustCompile(`\b(sections?|pages?|content|styles?|css|html|markup|code|headers?|footers?|nav|layout|cards?|articles?|chapters?|paragraphs?)\b`)
	butRe    = regexp.MustCompile(`\b(but|though|only)\b`)
	endsRe   = regexp.MustCompile(`\b(un(changed|modified|touched|altered)|unverändert|inchangée?|omitted|the same|identical|as before)( (from|in|as|to) (the )?(previous|original|last|earlier|first)( (version|answer|response|page|draft))?)?$`)
	// nothing but that something is as it was or not there
	noMoreWords = set("keep kept leave left stay stays remain remains is are was were all everything exactly completely entirely still the this that it " +
		"here same as before above in from to of previous previously prior last original earlier version answer response reply message output draft " +
		"revision round code content identical unchanged unmodified untouched unaltered changed modified not shown repeated omitted elided snipped out for brevity " +
		"unverändert inchangé inchangée")
)

// saysNoMore reports whether a comment says that something is as it was, or is not there, and nothing else.
func (p *phrase) saysNoMore() bool {
	for _, w := range p.words {
		if !noMoreWords[w] {
			return false
		}
	}
	return p.keeps() || p.omits()
}

// tells reports whether a comment tells what a program does with things: "leaves the rest of the list unchanged",
// "remaining arguments are handed on as before", "keep the value unchanged when it fails". Asked to keep a part of the page, it
// asks a reader.
func (p *phrase) tells() bool {
	if p.leads || p.trails || p.brackets {
		return false
	}
	if doesRe.MatchString(p.text) || whenRe.MatchString(p.text) && !aboutRe.MatchString(p.text) {
		return true
	}
	for _, m := range doneRe.FindAllStringSubmatch(p.text, -1) {
		if did := m[3]; !keepWords[did] && !omitWords[did] && !staysRe.MatchString(did) && !pageRe.MatchString(p.text) {
			return true
		}
	}
	object := objectRe.FindStringSubmatch(p.text)
	return object != nil && !restWords[object[2]] && doRe.MatchString(p.text) && !partRe.MatchString(p.text)
}

func (p *phrase) omits() bool { return p.has(omitWords) || omitRe.MatchString(p.text) }
func (p *phrase) keeps() bool { return p.has(keepWords) || keepRe.MatchString(p.text) }

// leavesOut reports whether a comment says that something is not there.
func (p *phrase) leavesOut() bool {
	if p.text == "" {
		return false
	}
	rest, keeps, omits := p.has(restWords), p.keeps(), p.omits()
	part, existing := partRe.MatchString(p.text), p.has(existingWords)
	switch {
	case p.only || brevityRe.MatchString(p.text) || foreignRe.MatchString(p.text):
		return true
	case p.keepsPart():
		return true
	case p.leads || p.trails:
		return rest || existing || keeps || omits || p.leads && moreRe.MatchString(p.text)
	case p.tells():
		return false
	case rest, existing && goesOnRe.MatchString(p.text):
		return keeps || omits || goesOnRe.MatchString(p.text)
	case omits:
		return part
	case keeps:
		return existing && part || elseRe.MatchString(p.text)
	}
	return false
}

// mayLeaveOut reports whether a comment says so when nothing follows where it stands: "header
// unchanged", "chart goes here".
func (p *phrase) mayLeaveOut() bool {
	const short = 6
	if p.text == "" || len(p.words) > short || p.tells() || butRe.MatchString(p.text) {
		return false
	}
	return p.keeps() || p.omits() || fillRe.MatchString(p.text) || further.MatchString(p.text) || addedRe.MatchString(p.text) && partRe.MatchString(p.text)
}

// toBeFilled reports whether a comment asks its reader to fill something in.
func (p *phrase) toBeFilled() bool {
	return p.text != "" && (todoRe.MatchString(p.text) || yourRe.MatchString(p.text))
}

// hollow reports whether a text that is all of a section's says nothing more than that something is left out.
func hollow(text string) bool {
	p := newPhrase(text)
	return strings.Trim(text, ".… \t\r\n[]") == "" || p.saysNoMore()
}

// escaped reports whether a text is a comment that became text.
func escaped(text string) bool {
	s := strings.TrimSpace(text)
	if !strings.HasPrefix(s, "<!--") || !strings.HasSuffix(s, "-->") {
		return false
	}
	p := newPhrase(s)
	return p.leavesOut() || p.saysNoMore() || p.has(restWords) && p.keeps()
}

// visible reports whether a text of the page, as a whole, is a phrase that leaves something out.
func visible(text string) bool {
	const short = 15
	p := newPhrase(text)
	if p.text == "" || p.only || len(p.words) > short {
		return false
	}
	part, end := partRe.MatchString(p.text), strings.TrimRight(p.text, ".")
	switch {
	case bodyRe.MatchString(end):
		return true
	case p.brackets:
		return p.leavesOut() || further.MatchString(p.text) && partNames.MatchString(p.text) || fillRe.MatchString(p.text) || part && (p.has(restWords) || p.has(existingWords))
	case p.leads:
		return p.leavesOut() && (p.trails || p.keeps() || p.omits())
	case len(p.words) > 9 || !part:
		return false
	}
	return brevityRe.MatchString(p.text) || p.has(restWords) && (endsRe.MatchString(end) || omitRe.MatchString(p.text))
}

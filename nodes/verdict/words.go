package verdict

import (
	"regexp"
	"strings"
)

// phrases matches any phrase of a list as whole words in any case. Commas set the phrases off; they may hold
// expressions.
func phrases(list string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(?:` + alternatives(list) + `)\b`)
}

func alternatives(list string) string {
	var out []string
	for _, p := range strings.Split(list, ",") {
		if p = strings.Join(strings.Fields(p), " +"); p != "" {
			out = append(out, p)
		}
	}
	return strings.Join(out, "|")
}

// alternativesAt is alternatives, each at the start of a word.
func alternativesAt(list string) string { return `\b(?:` + alternatives(list) + `)` }

// behindSigns matches any phrase of a list at the start of a remark.
func behindSigns(list string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)^[ ,;:(—–-]*(?:` + alternatives(list) + `)\b`)
}

var anyDenial = alternatives(denial)

// The words that speak about the most lenient value. Each list says where a word must stand to count.
const (
	// denial is all of a clause.
	denial = `no, not, nope, nah, nay, nein, nicht, non, ne pas, never, no way, no[ -]?go, false, off, nil, null, void, negative, tbd, tba, tbc, todo, pending, don't, do not,
		maybe, perhaps, possibly, unclear, unsure, uncertain, undecided, unknown, hold, on hold, wait, stop, blocked, denied, refused, reject, rejected, declined, withdrawn, retracted,
		revoked, cancell?ed, disabled, failed, fail, fails, wrong,
		not (?:there|yet|now|ready|so|really|quite|sure|today|recommended|approved|advised|advisable|possible|granted|justified|ok|okay)(?: yet)?`

	// hedges stand right behind the value.
	hedges = `if, once, unless, pending, when, provided, subject to, conditional, conditionally, as soon as, but, with reservations, candidate, blocked, later, soon, maybe, almost, nearly,
		wenn, falls, sofern, sobald, erst, aber, nicht, kein, keine, vorbehaltlich, unter vorbehalt, si, sauf, sous réserve, mais, pas, après, pero, sólo, salvo, con reservas, después, se, ma, solo se`

	// vouching words may follow the value with no sign between; any other takes part of it back.
	vouching = `because, since, as, now, today, immediately, approved, confirmed, granted, recommended, it, with (?:(?:high|full|great|complete|total) )?confidence,
		without (?:any )?(?:reservations?|conditions?|caveats?|hesitation|changes|doubts?)`

	// doubting words count anywhere in the value's own sentence, and in a short one behind it.
	doubting = `denied, refused, rejected, declined, withheld, withdrawn, revoked, retracted, rescinded, vetoed, overruled, overridden, suspended, conditional, conditionally, conditions,
		reservations, on hold, held back, postponed, deferred, delayed, pending, unless, until, subject to, provided, not yet, not warranted, not justified, not sure, not certain, not convinced,
		premature, too early, risky, risks, unsafe, unsound, unfit, unready, unstable, unfinished, untested, unverified, unconfirmed, unapproved, uncertain, unlikely, undecided, unusable,
		unacceptable, unwise, unsure, inadvisable, incomplete, caveats?, low confidence, confidence:? (?:is )?(?:low|none|[1-4][0-9]), reluctant, reluctantly, barely, tentative, tentatively,
		provisional, provisionally, caution, cautiously, needs?, requires, must (?:be|fix), fix [^.]*\bfirst, first fix, please fix, ha(?:s|ve) to be, assumes?, wait (?:one|another|a|for|until), remain, remains, awaiting, awaits, to be, guess,
		probably, likely, blockers? (?:is |are )?open, open blockers?, (?:is|are|still|fix(?:es)?|changes?|work|rounds?|cycles?|pass|reviews?) (?:still )?(?:needed|required), fails?, failed, failing,
		below (?:the )?(?:threshold|minimum|limit|bar|target|[0-9.]+), too low, disagree, object, doubts?, doubtful, dissent, under protest, against, questionable, typo, mistake, downgraded,
		outstanding, eventually, someday, another, one more, before (?:launch|launching|release|releasing|shipping|publishing|going live), do it after, never mind, must-fix:,
		would (?:wait|hold), let's wait, excluded, apart from, permitting, own risk, i wish, i suppose, i think, hopefully, forced, told me, instructed, asked me to, wants me to, contingent, as long as, so long as, on condition, under the condition, depending, mandatory, borderline, grudging(?:ly)?, half-hearted(?:ly)?, to follow, gates? (?:is |are )?red, not my,
		perhaps, of course not, obviously not, certainly not,
		nicht, kein, vorbehalt, réserve, reservas, primero, zuerst, d'abord, noch nicht, pas encore, todavía no, ikke, inte`

	// conditions count where a clause of the value's own sentence begins.
	conditions = `if, once, after, when, only, assuming, except, wenn, falls, sobald`

	// reversals count wherever a clause begins, in any sentence behind the value.
	reversals = `correction, corrected, corrigendum, actually, scratch, strike, i mean, on second thoughts?, on reflection, however, assuming, except, provided, unless, only if, only when, only after,
		not yet, hold on, on hold, never mind, sorry, oops, or rather`

	// nots stand before a word for letting the work out.
	nots = `never, cannot, nobody, no one, by no means, not in a state, unable, unfit, unready, unsuitable, unsafe, nowhere near, far from, too early, premature`

	// holding words have it as their object.
	holding = `hold, holds, hold off, hold off on, refrain from, avoid, advise not to, hold back, holds back, withhold, withholds, block, blocks, delay, postpone, stop, refuse, deny, reject, rejects,
		defer, cancel, veto, halt, forbid, forbids, rules? out`

	// grudging words stand behind it.
	grudging = `at (?:your|our) own risk, with (?:caution|care|reservations), reluctantly, under protest`

	// partly stands before it and lets out less than all.
	partly = `soft, beta, alpha, staging, internal, partial, limited, conditional, provisional, preview, private, staged`

	// bad says what it is or would be.
	bad = `blocked, held, withheld, denied, refused, rejected, postponed, deferred, delayed, premature, too early, off\b, impossible, out of the question, unwise, inadvisable, withdrawn, revoked,
		retracted, cancell?ed, vetoed, unjustified, irresponsible, reckless, risky, unsafe, conditional, provisional, wrong, a bad idea, an? (?:mistake|typo|error),
		not (?:yet )?(?:possible|recommended|justified|warranted|advised|advisable|ok|okay|acceptable|ready|approved|an option|appropriate)`

	// sparing words in its clause take a word of doubt away.
	sparing = `last (?:time|round|cycle|review), previous(?:ly)?, earlier, formerly, no longer, used to, optional, was needed, were needed, gone, resolved, dispelled, lifted`
)

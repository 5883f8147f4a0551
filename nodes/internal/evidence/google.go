package evidence

import "regexp"

// Google says that a minute's quota, a day's quota and a paid plan are used up with the same sentence,
// which is also that of others for an empty account; what stands around it tells them apart.
var (
	googleSays = regexp.MustCompile(`(?i)resource_exhausted|\bquota metric\b|\bquotaid\b|ai\.google\.dev|exceeded for metric`)
	googleDay  = regexp.MustCompile(`(?i)per ?day\b|perday|daily`)
	googleNone = regexp.MustCompile(`(?i)\blimit: 0\b`) // not on offer without a paid plan
	googleUsed = regexp.MustCompile(`(?i)exceeded your current quota`)
)

// googleQuota returns the category of a quota of Google's APIs, empty when text is about something else.
func googleQuota(text string) string {
	if !googleSays.MatchString(text) {
		return ""
	}
	_, soon := Delay(text)
	switch {
	case googleNone.MatchString(text):
		return "billing"
	case googleDay.MatchString(text):
		return "quota_wait"
	case soon:
		return "rate_limited"
	case googleUsed.MatchString(text):
		return "quota_wait"
	}
	return ""
}

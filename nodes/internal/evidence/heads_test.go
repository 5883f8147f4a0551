package evidence

import (
	"strings"
	"testing"
	"time"
)

// Errors that stand where an answer should, and what they mean. C-11, R-1
func TestErrorsInsteadOfAnAnswer(t *testing.T) {
	for text, want := range map[string]string{
		// the page of a gateway that a client hands on behind its own words
		"API Error: 502 <html><body>Bad Gateway</body></html>":                                              "transient",
		"API Error: 502 Bad Gateway <html>":                                                                 "transient",
		"API Error: 502 <html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>nginx</body></html>": "transient",
		"API Error: 403 <!doctype html><html lang=en><body>Access is blocked</body></html>":                 "transient",
		"API Error: 413 <html><head><title>413 Request Entity Too Large</title></head></html>":              "input_too_big",
		"API Error: 429 <html><body>slow down</body></html>":                                                "rate_limited",
		"API Error (503): <html><body>" + strings.Repeat("busy ", 800) + "</body></html>":                   "transient",
		"litellm.APIError: <html><head><title>502 Bad Gateway</title></head><body></body></html>":           "transient",
		"unexpected status 524: <!DOCTYPE html><html><body>x</body></html>":                                 "transient",
		"Error: 502\n<html><head><title>502 Bad Gateway</title></head><body></body></html>":                 "transient",
		"openai.InternalServerError: <html><head><title>500 Internal Server Error</title></head></html>":    "transient",
		// the names of exceptions
		"httpx.ReadTimeout: The read operation timed out": "transient",
		"httpx.ReadTimeout":                                 "transient",
		"httpx.ReadError":                                   "transient",
		"httpcore.RemoteProtocolError: peer closed":         "transient",
		"aiohttp.client_exceptions.ServerDisconnectedError": "transient",
		"aiohttp.client_exceptions.ClientPayloadError: Response payload is not completed": "transient",
		"google.api_core.exceptions.ResourceExhausted: 429":                               "rate_limited",
		"google.api_core.exceptions.ServiceUnavailable: 503 The model is overloaded.":     "transient",
		"google.api_core.exceptions.DeadlineExceeded: 504":                                "transient",
		"google.api_core.exceptions.Unauthenticated: 401":                                 "auth",
		"google.api_core.exceptions.InvalidArgument: 400 no":                              "protocol",
		"google.genai.errors.ServerError: 503 UNAVAILABLE":                                "transient",
		"google.genai.errors.ServerError: 503 UNAVAILABLE. {'error': {'code': 503}}":      "transient",
		"requests.exceptions.ConnectTimeout: HTTPSConnectionPool(host='x', port=443)":     "transient",
		"openai.APITimeoutError":                                           "transient",
		"litellm.Timeout: no answer":                                       "transient",
		"Error code: 529":                                                  "transient",
		"Credit balance is too low":                                        "billing",
		"Credit balance is too low. Add money.":                            "billing",
		"Credit balance is too low to access the API":                      "billing",
		"Not logged in · Please run /login":                                "auth",
		"Not logged in":                                                    "auth",
		"Invalid API key · Please run /login":                              "auth",
		"Prompt is too long":                                               "input_too_big",
		"prompt is too long: 1250000 tokens > 200000 maximum":              "input_too_big",
		"Overloaded":                                                       "rate_limited",
		"Internal server error":                                            "transient",
		"Internal Server Error. Please try again later.":                   "transient",
		"Execution error":                                                  "transient",
		"Error 503 from upstream":                                          "transient",
		"Error calling the API: overloaded":                                "rate_limited",
		"Rate limit reached for m in organization org-x on tokens per min": "rate_limited",
		"Too Many Requests":                                                "rate_limited",
		"Rate limited":                                                     "rate_limited",
		"Connection error.":                                                "transient",
		"Request timed out.":                                               "transient",
		"Claude AI usage limit reached|1773151200":                         "quota_wait",
		"You've reached your weekly limit for this model":                  "quota_wait",
		"FATAL ERROR: timed out":                                           "transient",
		"Failed to authenticate. API Error: 401 no":                        "auth",
		"Resource exhausted. Please try again later.":                      "rate_limited",
		"Quota exceeded for quota metric 'requests per minute'":            "rate_limited",
		"OAuth token has expired.":                                         "auth",
		"exceeded retry limit, last status: 401 Unauthorized, request id: 99438b5929d256ae": "auth",
	} {
		if !Head(text) {
			t.Errorf("taken as an answer: %.80q", text)
		}
		e := Case{Text: text, Else: "protocol", Now: time.Now(), Zone: time.UTC, Tries: 1}.Error()
		if e.Category != want {
			t.Errorf("%.80q: %s, want %s", text, e.Category, want)
		}
	}
}

// Answers that begin with the words of an error, and pages of errors that were asked for.
func TestAnswersThatBeginLikeErrors(t *testing.T) {
	for _, text := range []string{
		"Credit balance is too low is the text of the alert; it reads well.",
		"Not logged in users are sent to the login page; that is right.",
		"Prompt is too long for new users? No: it reads well.",
		"Overloaded pages: none. The page is fine and every section reads well.",
		"Internal server error pages are styled like the rest.",
		"Execution error handling is good; the page is ready.",
		"Error handling: the page shows a clear message." + strings.Repeat(" It names the way out.", 48),
		"Error handling: the page shows a clear message.",
		"API error messages are shown in a box.",
		"Error messages about rate limits read well.",
		"Fatal flaws: none.",
		"Invalid API key is shown in red where it should be.",
		"You've reached the end of the list; nothing is missing.",
		"Rate limit headers are explained in the second part.",
		"Failed to find any defect on the page.",
		"Limit reached is what the counter shows at ten; it reads well.",
		"There's an issue with the footer, nothing else.",
		"You've reached your goal; the limit of 3 pages holds.",
		"Usage limit reached for a day is the text of the alert; it reads well.",
		"Failed to spot a single issue in the footer.",
		"Connection lost banners are shown on each page.",
		"Service unavailable is what the page says at night; that is right.",
		"Too many requests are made by the third script.",
		"OAuth token handling is described in part two.",
		"Unknown command handling is missing in the table.",
		"Settings file is described in part one.",
		"index.html: all fine.\nmain.css: all fine.",
		"config.Server: the table lists its fields.",
		"Error 404 page:\n<!DOCTYPE html><html><head><title>404 Not Found</title></head><body>Not here</body></html>",
		"Error: 404\n<!DOCTYPE html><html><head><title>Not here</title><style>h1{}</style></head><body>Not here</body></html>",
		"API Error: Rate limit reached is explained here.\n<html><body>x</body></html>",
		"Error: MCP server failed to start\n<html><body>x</body></html>",
		"API Error: 502 is explained on this page: <html><body>x</body></html>",
		"Here is the page for error 502:\n<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body></body></html>",
	} {
		if Head(text) {
			t.Errorf("taken for an error: %.80q", text)
		}
	}
}

func TestCleanLeavesNothingUnseen(t *testing.T) {
	for _, text := range []string{"\u200b", "\u2060\u200b \n", "\ufeff\u200d", "\u00ad", "\u2800", "\x00\x00", "\u3164\ufe0f"} {
		if got := Clean(text); got != "" {
			t.Errorf("%q: %q is left", text, got)
		}
	}
	if got := Clean("\u200b a\u200bb \u2060"); got != "a\u200bb" {
		t.Errorf("%q", got)
	}
}

//! Text, numbers and data in HTML.

use takt_trace::visible::is_hidden;

/// `text` with everything escaped that means something to HTML, in elements and attributes.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Control characters and marks that turn the direction of writing could make a
            // name look like another.
            c if is_hidden(c) && c != '\n' && c != '\t' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// JSON that may stand in a `<script>` element: it cannot end the element or begin a comment.
pub(crate) fn script_json(json: &str) -> String {
    // Outside strings these characters do not occur in JSON, so an escape is always right.
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// A share as a percentage. It is rounded down: what reads "100 %" is all of it.
pub(crate) fn percent(share: f64) -> String {
    let share = finite(share);
    if share >= 1.0 {
        return format!("{:.0} %", share * 100.0);
    }
    format!("{:.1} %", (share * 1000.0).floor() / 10.0)
}

/// Microseconds as milliseconds.
pub(crate) fn millis(us: f64) -> String {
    format!("{:.2} ms", finite(us) / 1000.0)
}

/// A whole number with thin spaces between thousands.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() * 2);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

/// `text`, or its beginning and an ellipsis if it is longer than `max` characters.
pub(crate) fn shortened(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(max.saturating_sub(1)).collect();
    short.push('…');
    short
}

/// `value`, or zero if it is no number that can be drawn.
pub(crate) fn finite(value: f64) -> f64 {
    if value.is_finite() { value } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_become_markup() {
        assert_eq!(
            escape("<img src=x onerror='a'>&\"\u{202e}\0"),
            "&lt;img src=x onerror=&#39;a&#39;&gt;&amp;&quot;\u{fffd}\u{fffd}"
        );
    }

    #[test]
    fn json_cannot_end_its_script() {
        let json = serde_json::to_string("</script><!--").unwrap();
        let safe = script_json(&json);
        assert!(!safe.contains('<') && !safe.contains('>'));
        let back: String = serde_json::from_str(&safe).unwrap();
        assert_eq!(back, "</script><!--");
    }

    #[test]
    fn almost_all_is_not_all() {
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(percent(0.99999), "99.9 %");
        assert_eq!(percent(f64::NAN), "0.0 %");
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(count(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(count(12), "12");
        assert_eq!(millis(1234.5), "1.23 ms");
        assert_eq!(shortened("navigation", 5), "navi…");
    }
}

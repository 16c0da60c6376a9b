//! Strips of pictures: what programs showed in each run, side by side.

use crate::frames::Strip;
use crate::html::escape;

/// All strips; nothing if there are none.
pub(crate) fn section(strips: &[Strip]) -> String {
    if strips.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "<section><h2>What was to be seen</h2><p class=\"note\">What each app showed at the same moments of both runs, \
         100 ms apart, drawn again from the numbers of its frames. A picture that had been there for more than two \
         of its periods is framed in red: it stood still.</p>",
    );
    let mut before = "";
    for strip in strips {
        if strip.app != before {
            out += &format!("<h3>{}</h3>", escape(&strip.app));
        }
        before = &strip.app;
        out += &format!("<div class=\"strip\"><span>{}</span>", escape(&strip.run));
        for cell in &strip.cells {
            let class = if cell.age_ms as f64 > strip.period_ms * 2.0 { " class=\"stale\"" } else { "" };
            let about = format!("{}, {}: this picture was {} ms old", strip.app, strip.run, cell.age_ms);
            out += &format!(
                "<img{class} alt=\"{0}\" title=\"{0}\" src=\"data:image/png;base64,{1}\">",
                escape(&about),
                base64(&cell.png)
            );
        }
        out += "</div>";
    }
    out + "</section>\n"
}

/// Bytes as text (RFC 4648).
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for part in bytes.chunks(3) {
        let byte = |at: usize| u32::from(part.get(at).copied().unwrap_or(0));
        let word = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let index = (word >> (18 - 6 * digit)) & 63;
            text.push(if digit <= part.len() { char::from(DIGITS[index as usize]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::Cell;

    #[test]
    fn bytes_become_the_text_of_the_standard() {
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn pictures_that_stand_still_are_marked() {
        let strip = |run: &str, age_ms| Strip {
            app: "<dial>".to_owned(),
            run: run.to_owned(),
            period_ms: 16.7,
            cells: vec![Cell { png: vec![1, 2, 3], age_ms }],
        };
        let html = section(&[strip("without", 90), strip("with", 10)]);
        assert_eq!((html.matches("class=\"stale\"").count(), html.matches("<img").count()), (1, 2));
        assert!(html.contains("AQID") && !html.contains("<dial>"));
        assert_eq!(html.matches("<h3>").count(), 1, "{html}");
        assert_eq!(section(&[]), "");
    }
}

//! A compute shader that does a part of the workgroups.
//!
//! GL ES dispatches workgroups from 0 on. To dispatch some of them later, their numbers must be moved:
//! [`with_base`] writes the built-in variables that tell a workgroup where it is as sums with a uniform.
//! The text is changed word by word, outside of comments, and before macros are replaced: so all
//! conditions, macros and extensions mean to the driver what they meant before.

use super::limits::SOURCE_BYTES_MAX;

/// A source whose workgroups begin where a uniform says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Based {
    /// The source.
    pub source: String,
    /// The name of the uniform, an array of three `uvec3`: the first workgroup, the first invocation, and
    /// how many workgroups there are in all.
    pub uniform: String,
}

/// Why a source cannot be changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotBased {
    /// It is longer than what is read.
    #[error("the source is too long")]
    TooLong,
    /// It is not GLSL ES 3.10 or newer, or has no end where it should.
    #[error("the source has no version, or ends in a comment or directive")]
    Malformed,
    /// A directive depends on a name that would be changed, or on numbers of lines.
    #[error("a directive depends on what would be changed")]
    Directive,
    /// A word goes on in the next line.
    #[error("a word goes on in the next line")]
    Spliced,
}

/// Changes a compute shader so that its workgroups begin where a uniform says.
///
/// # Errors
///
/// Says why the text is not changed.
pub fn with_base(source: &str) -> Result<Based, NotBased> {
    if source.len() > SOURCE_BYTES_MAX {
        return Err(NotBased::TooLong);
    }
    let mut uniform = "takt_part".to_owned();
    while source.contains(&uniform) {
        uniform.push('x');
    }
    let mut writer = Writer::new(source, &uniform);
    writer.run()?;
    let at = writer.declare_at.ok_or(NotBased::Malformed)?;
    let mut text = writer.text;
    text.insert_str(at, &format!("uniform highp uvec3 {uniform}[3];\n"));
    Ok(Based { source: text, uniform })
}

/// Copies a source and changes words.
struct Writer<'a> {
    source: &'a str,
    uniform: &'a str,
    at: usize,
    text: String,
    /// Nothing but blanks came in this line so far.
    first: bool,
    directive: Option<Directive<'a>>,
    /// `#if`s that are open.
    depth: usize,
    /// The version or an extension stands in one of them, so that the declaration goes behind it.
    wanted: bool,
    /// Where the uniform is declared: behind the version and all extensions, which GLSL wants first.
    declare_at: Option<usize>,
}

/// A line that begins with `#`.
#[derive(Clone, Copy)]
struct Directive<'a> {
    name: &'a str,
    /// Words behind its name.
    words: usize,
}

impl<'a> Writer<'a> {
    fn new(source: &'a str, uniform: &'a str) -> Self {
        Self {
            source,
            uniform,
            at: 0,
            text: String::with_capacity(source.len() + 256),
            first: true,
            directive: None,
            depth: 0,
            wanted: false,
            declare_at: None,
        }
    }

    fn run(&mut self) -> Result<(), NotBased> {
        while let Some(next) = self.source[self.at..].chars().next() {
            let rest = &self.source[self.at..];
            if let Some(spliced) = splice(rest) {
                self.copy(spliced);
            } else if rest.starts_with("//") {
                self.copy(line_comment(rest));
            } else if let Some(comment) = rest.strip_prefix("/*") {
                let end = comment.find("*/").ok_or(NotBased::Malformed)?;
                self.copy(end + 4);
            } else if next == '\n' {
                self.copy(1);
                self.end_line();
            } else if next == '#' && self.first && self.directive.is_none() {
                self.directive = Some(Directive { name: "", words: 0 });
                self.copy(1);
            } else if next.is_ascii_alphabetic() || next == '_' {
                self.word()?;
            } else if next.is_ascii_digit() {
                let digits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
                self.copy(length(rest, digits));
            } else {
                self.first &= next.is_whitespace();
                self.copy(next.len_utf8());
            }
        }
        // A directive in the last line may be without its end.
        if self.directive.is_some() || self.depth > 0 { Err(NotBased::Malformed) } else { Ok(()) }
    }

    fn copy(&mut self, bytes: usize) {
        self.text.push_str(&self.source[self.at..self.at + bytes]);
        self.at += bytes;
    }

    fn end_line(&mut self) {
        self.first = true;
        let Some(directive) = self.directive.take() else {
            return;
        };
        match directive.name {
            "version" | "extension" => self.wanted = true,
            "if" | "ifdef" | "ifndef" => self.depth += 1,
            "endif" => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        if self.wanted && self.depth == 0 {
            self.wanted = false;
            self.declare_at = Some(self.text.len());
        }
    }

    fn word(&mut self) -> Result<(), NotBased> {
        let rest = &self.source[self.at..];
        let word = &rest[..length(rest, |c| c.is_ascii_alphanumeric() || c == '_')];
        let behind = &rest[word.len()..];
        if let Some(spliced) = splice(behind)
            && behind[spliced..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        {
            return Err(NotBased::Spliced);
        }
        self.first = false;
        let moved = self.moved(word);
        if let Some(directive) = &mut self.directive {
            if directive.name.is_empty() {
                directive.name = word;
            } else {
                directive.words += 1;
                let macro_body = directive.name == "define" && directive.words > 1;
                if word == "__LINE__" || moved.is_some() && !macro_body {
                    return Err(NotBased::Directive);
                }
            }
        } else if word == "__LINE__" {
            return Err(NotBased::Directive);
        }
        match moved {
            Some(moved) => {
                self.text.push_str(&moved);
                self.at += word.len();
            }
            None => self.copy(word.len()),
        }
        Ok(())
    }

    /// What a built-in variable is in a part of the workgroups, if it is another one there.
    fn moved(&self, word: &str) -> Option<String> {
        let uniform = self.uniform;
        match word {
            "gl_WorkGroupID" => Some(format!("(gl_WorkGroupID + {uniform}[0])")),
            "gl_GlobalInvocationID" => Some(format!("(gl_GlobalInvocationID + {uniform}[1])")),
            "gl_NumWorkGroups" => Some(format!("{uniform}[2]")),
            _ => None,
        }
    }
}

/// Bytes at the start of a text whose characters are all such.
fn length(text: &str, such: impl Fn(char) -> bool) -> usize {
    text.find(|c| !such(c)).unwrap_or(text.len())
}

/// Bytes of a backslash that joins two lines, if the text begins with one.
fn splice(text: &str) -> Option<usize> {
    let newline = text.strip_prefix('\\')?;
    ["\n", "\r\n"].iter().find(|end| newline.starts_with(**end)).map(|end| 1 + end.len())
}

/// Bytes of a comment up to the end of its line, which is not part of it.
fn line_comment(text: &str) -> usize {
    let mut at = 0;
    loop {
        let Some(end) = text[at..].find('\n') else {
            return text.len();
        };
        let line = text[at..at + end].trim_end_matches('\r');
        if !line.ends_with('\\') {
            return at + end;
        }
        at += end + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(source: &str) -> String {
        with_base(source).expect("it can be changed").source
    }

    #[test]
    fn numbers_of_workgroups_are_moved() {
        let source = "#version 310 es\nlayout(local_size_x = 4) in;\nvoid main() {\n  uint a = gl_WorkGroupID.x \
                      + gl_NumWorkGroups.y * gl_GlobalInvocationID[2] + gl_LocalInvocationIndex;\n}\n";
        let wanted = "#version 310 es\nuniform highp uvec3 takt_part[3];\nlayout(local_size_x = 4) in;\n\
                      void main() {\n  uint a = (gl_WorkGroupID + takt_part[0]).x + takt_part[2].y * \
                      (gl_GlobalInvocationID + takt_part[1])[2] + gl_LocalInvocationIndex;\n}\n";
        assert_eq!(changed(source), wanted);
    }

    #[test]
    fn comments_and_other_words_stay() {
        let source = "#version 310 es\n// gl_WorkGroupID \\\n gl_WorkGroupID\n/* gl_WorkGroupID\n*/ \
                      uint my_gl_WorkGroupID = 0x1gl_WorkGroupIDu;\n";
        assert_eq!(changed(source).replace("uniform highp uvec3 takt_part[3];\n", ""), source);
    }

    #[test]
    fn the_declaration_comes_behind_all_extensions() {
        let source =
            "#version 310 es\n#ifdef A\n#extension GL_A : enable\n#if 1\nuint x;\n#endif\n#endif\nuint y;\n";
        let wanted = "#endif\n#endif\nuniform highp uvec3 takt_part[3];\nuint y;\n";
        assert!(changed(source).ends_with(wanted), "{}", changed(source));
    }

    #[test]
    fn macros_may_use_the_numbers_but_conditions_may_not() {
        let macros =
            "#version 310 es\n#define AT(x) gl_WorkGroupID.x /* to\n the end */ + (x)\nuint y = AT(2);\n";
        assert!(changed(macros).contains("#define AT(x) (gl_WorkGroupID + takt_part[0]).x /* to\n the"));
        let with = |line: &str| with_base(&format!("#version 310 es\n{line}\nvoid main() {{}}\n"));
        for line in [
            "#ifdef gl_WorkGroupID\n#endif",
            "#define gl_WorkGroupID 3",
            "#undef gl_NumWorkGroups",
            "int x = __LINE__;",
        ] {
            assert_eq!(with(line), Err(NotBased::Directive), "{line}");
        }
        assert_eq!(with("uint x = gl_Work\\\nGroupID.x;"), Err(NotBased::Spliced));
        assert_eq!(with("/* no end"), Err(NotBased::Malformed));
        assert_eq!(with("#if 1"), Err(NotBased::Malformed));
        assert_eq!(with_base("void main() {}"), Err(NotBased::Malformed), "no version");
        assert_eq!(with_base(&"x".repeat(SOURCE_BYTES_MAX + 1)), Err(NotBased::TooLong));
    }

    #[test]
    fn the_name_is_one_that_the_source_has_not() {
        let based = with_base("#version 310 es\nuint takt_part, takt_partx;\n").expect("it can be changed");
        assert_eq!(based.uniform, "takt_partxx");
    }
}

//! Reads specifications and limits.

use std::collections::BTreeMap;

use takt_core::Span;
use takt_core::limits::APPS_MAX;
use takt_core::service::Turns;

use super::{Entry, Spec, SpecReservation, Terms};
use crate::scenario::{DIAGNOSTICS_MAX, Diagnostic, NAME_CHARS_MAX, SPAN_NS_MAX};

const FIELDS: [&str; 6] = ["name", "sched", "resv", "prio", "C", "T"];
const FORMAT: &str =
    "write name:sched:resv:prio:C:T, for example openarena:HT:-:10:: or engine:PRT:PE:5:2500:25000";

/// The bytes of a file as text.
///
/// # Errors
///
/// Where it stops being UTF-8.
pub fn text<'a>(file: &str, bytes: &'a [u8]) -> Result<&'a str, Diagnostic> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let column = String::from_utf8_lossy(&before[start..]).chars().count() + 1;
        let wrong = bytes.get(error.valid_up_to()).copied().unwrap_or_default();
        Diagnostic {
            file: file.to_owned(),
            line: small(line),
            column: small(column),
            message: format!("byte 0x{wrong:02x} is not UTF-8"),
            remedy: "save the file as plain text in UTF-8".to_owned(),
        }
    })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// Reads a specification; `file` is for messages.
///
/// # Errors
///
/// Everything that is wrong, in order of appearance.
pub fn parse(file: &str, text: &str) -> Result<Spec, Vec<Diagnostic>> {
    let mut reader = SpecReader { file, problems: Vec::new(), lines: BTreeMap::new(), shared: None };
    let mut spec = Spec::default();
    for (line, text) in (1..).zip(text.lines()) {
        let content = text.split('#').next().unwrap_or("");
        if content.trim().is_empty() {
            continue;
        }
        let entry = reader.entry(line, content);
        spec.entries.extend(entry);
        if spec.entries.len() > APPS_MAX {
            let message = format!("more than {APPS_MAX} applications");
            reader.problem(line, 1, message, format!("use at most {APPS_MAX} (APPS_MAX)"));
            break;
        }
        if reader.problems.len() >= DIAGNOSTICS_MAX {
            break;
        }
    }
    if spec.entries.is_empty() && reader.problems.is_empty() {
        reader.problem(1, 1, "no application is specified".to_owned(), FORMAT);
    }
    if reader.problems.is_empty() { Ok(spec) } else { Err(reader.problems) }
}

/// Reads the admission limit, in permille, from a text with one number of percent.
///
/// # Errors
///
/// What is wrong with it.
pub fn parse_limit(file: &str, text: &str) -> Result<u32, Diagnostic> {
    let remedy =
        "write one number from 0 to 100, the share of the GPU in percent that reserves may take together";
    let at = |line, column, message| Diagnostic {
        file: file.to_owned(),
        line,
        column,
        message,
        remedy: remedy.to_owned(),
    };
    let contents = (1..).zip(text.lines().map(|line| line.split('#').next().unwrap_or("")));
    let mut numbers = contents.filter(|(_, content)| !content.trim().is_empty());
    let Some((line, content)) = numbers.next() else {
        return Err(at(1, 1, "there is no limit".to_owned()));
    };
    let column = small(content.chars().take_while(|c| c.is_whitespace()).count() + 1);
    let number = content.trim();
    let percent = number.strip_suffix('%').unwrap_or(number).trim_end();
    let Some(permille) = permille(percent) else {
        return Err(at(line, column, format!("'{}' is no limit", short(number))));
    };
    if let Some((line, content)) = numbers.next() {
        return Err(at(line, 1, format!("'{}' comes after the limit", short(content))));
    }
    Ok(permille)
}

/// Percent with at most one decimal as permille.
fn permille(percent: &str) -> Option<u32> {
    let (whole, tenths) = percent.split_once('.').unwrap_or((percent, "0"));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(tenths) || tenths.len() != 1 {
        return None;
    }
    let permille = whole.parse::<u32>().ok()?.checked_mul(10)?.checked_add(tenths.parse().ok()?)?;
    (permille <= 1000).then_some(permille)
}

struct SpecReader<'a> {
    file: &'a str,
    problems: Vec<Diagnostic>,
    /// Line of each name so far.
    lines: BTreeMap<String, u32>,
    /// Line and size of the shared reserve.
    shared: Option<(u32, Terms)>,
}

/// A field and the column it begins in.
type Field<'t> = (u32, &'t str);

impl SpecReader<'_> {
    fn problem(&mut self, line: u32, column: u32, message: String, remedy: impl Into<String>) {
        let file = self.file.to_owned();
        self.problems.push(Diagnostic { file, line, column, message, remedy: remedy.into() });
    }

    fn entry(&mut self, line: u32, content: &str) -> Option<Entry> {
        let [name, sched, resv, prio, capacity, period] = self.fields(line, content)?;
        let known = self.name(line, name);
        let turns = match sched.1.to_ascii_uppercase().as_str() {
            "PRT" => Some(Turns::Single),
            "HT" => Some(Turns::Following),
            _ => {
                let message = format!("sched is '{}'", short(sched.1));
                self.problem(
                    line,
                    sched.0,
                    message,
                    "use PRT (predictable response time) or HT (high throughput)",
                );
                None
            }
        };
        let priority = self.priority(line, prio);
        let reservation = self.reservation(line, resv, (capacity, period));
        let entry = Entry {
            line,
            text: content.trim().to_owned(),
            name: known?,
            turns: turns?,
            reservation: reservation?,
            priority: priority?,
        };
        let capped = !matches!(entry.reservation, SpecReservation::Unlimited);
        if capped && entry.turns == Turns::Following {
            let message = format!("'{}' has a reserve and HT", short(&entry.name));
            let remedy = "use PRT, since budgets are looked at between groups; or use - as resv";
            self.problem(line, sched.0, message, remedy);
            return None;
        }
        Some(entry)
    }

    /// Splits a line; complains if it has not six fields.
    fn fields<'t>(&mut self, line: u32, content: &'t str) -> Option<[Field<'t>; 6]> {
        let mut fields = [(1, ""); 6];
        let mut column = 1;
        let mut count = 0;
        for text in content.split(':') {
            let indent = text.chars().take_while(|c| c.is_whitespace()).count();
            if let Some(field) = fields.get_mut(count) {
                *field = (small(column + indent), text.trim());
            } else {
                let message = format!("'{}' is a field too many", short(text));
                self.problem(line, small(column + indent), message, FORMAT);
                return None;
            }
            count += 1;
            column += text.chars().count() + 1;
        }
        if let Some(missing) = FIELDS.get(count) {
            let message = format!("'{}' ends before its field {missing}", short(content));
            self.problem(line, small(column - 1), message, FORMAT);
            return None;
        }
        Some(fields)
    }

    fn name(&mut self, line: u32, (column, name): Field<'_>) -> Option<String> {
        let chars = name.chars().count();
        if name.is_empty() || chars > NAME_CHARS_MAX || name.chars().any(char::is_control) {
            let message = format!("'{}' is no name", short(name));
            let remedy = format!("use 1 to {NAME_CHARS_MAX} printable characters");
            self.problem(line, column, message, remedy);
            return None;
        }
        if let Some(first) = self.lines.insert(name.to_owned(), line) {
            let message = format!("'{}' is specified again", short(name));
            self.problem(line, column, message, format!("keep this one or that of line {first}"));
            return None;
        }
        Some(name.to_owned())
    }

    /// The static priority; inside, `None` is automatic.
    #[expect(clippy::option_option, reason = "outside, None is a complaint made")]
    fn priority(&mut self, line: u32, (column, text): Field<'_>) -> Option<Option<i32>> {
        if text == "*" {
            return Some(None);
        }
        let number = text.parse::<i32>().ok();
        if number.is_none() {
            let message = format!("prio is '{}'", short(text));
            let remedy = "use a whole number (the higher wins), or * for the priority of the focused window";
            self.problem(line, column, message, remedy);
        }
        number.map(Some)
    }

    fn reservation(
        &mut self,
        line: u32,
        (column, resv): Field<'_>,
        (capacity, period): (Field<'_>, Field<'_>),
    ) -> Option<SpecReservation> {
        let given = !(absent(capacity.1) && absent(period.1));
        match resv.to_ascii_uppercase().as_str() {
            "PE" => Some(SpecReservation::Posterior(self.terms(line, capacity, period)?)),
            "AE" => Some(SpecReservation::Apriori(self.terms(line, capacity, period)?)),
            "SHARED" if !given && self.shared.is_some() => Some(SpecReservation::Shared(None)),
            "SHARED" => {
                let terms = self.terms(line, capacity, period)?;
                let (first, known) = *self.shared.get_or_insert((line, terms));
                if terms != known {
                    let message = format!("C:T is {}:{}", capacity.1, period.1);
                    let remedy = format!("all share one reserve: leave C and T empty or as in line {first}");
                    self.problem(line, capacity.0, message, remedy);
                    return None;
                }
                Some(SpecReservation::Shared((first == line).then_some(terms)))
            }
            other @ ("BACKGROUND" | "-" | "NONE" | "") => {
                if given {
                    let message = format!("C:T is {}:{}", short(capacity.1), short(period.1));
                    let remedy = "leave C and T empty or 0: there is no reserve of its own";
                    self.problem(line, capacity.0, message, remedy);
                    return None;
                }
                let background = other == "BACKGROUND";
                Some(if background { SpecReservation::Background } else { SpecReservation::Unlimited })
            }
            _ => {
                let message = format!("resv is '{}'", short(resv));
                self.problem(line, column, message, "use PE, AE, Shared, Background or - (none)");
                None
            }
        }
    }

    fn terms(&mut self, line: u32, capacity: Field<'_>, period: Field<'_>) -> Option<Terms> {
        let (at, text) = (capacity.0, capacity.1);
        let capacity = self.time(line, capacity, "C");
        let period = self.time(line, period, "T");
        let (capacity, period) = (capacity?, period?);
        if capacity > period {
            let message = format!("C is {text}, more than T");
            self.problem(line, at, message, "no more than the whole GPU can be set aside: use C ≤ T");
            return None;
        }
        Some(Terms { capacity, period })
    }

    /// A time of 1 µs or more.
    fn time(&mut self, line: u32, (column, text): Field<'_>, name: &str) -> Option<Span> {
        let us_max = SPAN_NS_MAX.unsigned_abs() / 1000;
        let us = text.parse::<u128>().ok().and_then(|us| u64::try_from(us).ok());
        let time =
            us.filter(|us| (1..=us_max.try_into().unwrap_or(u64::MAX)).contains(us)).map(Span::from_us);
        if time.is_none() {
            let message = format!("{name} is '{}'", short(text));
            self.problem(line, column, message, format!("use whole microseconds from 1 to {us_max}"));
        }
        time
    }
}

/// A time that is left out.
fn absent(text: &str) -> bool {
    text.is_empty() || text == "-" || text == "0"
}

/// Enough of a text to recognise it.
fn short(text: &str) -> String {
    const CHARS_MAX: usize = 40;
    let text = text.trim();
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

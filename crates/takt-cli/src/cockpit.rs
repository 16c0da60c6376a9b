//! `takt cockpit`: a running cockpit is asked, over the socket for tools in its folder.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use takt_cockpit::control::{
    OutputStatus, ProgramStatus, REPLY_BYTES_MAX, Reply, Request, SHOT_BYTES_MAX, SOCKET, Shot, Status,
    WindowStatus,
};

use crate::args::{CockpitArgs, CockpitCommand, CockpitListArgs, ShotArgs};
use crate::table::Table;
use crate::{Answer, output};

/// How long the cockpit may take for a part of its answer; it waits 10 s for a picture itself.
const PATIENCE: Duration = Duration::from_secs(15);

pub(crate) fn run(command: &CockpitCommand) -> anyhow::Result<Answer> {
    let (cockpit, request) = match command {
        CockpitCommand::List(args) => return list(args),
        CockpitCommand::Shot(args) => return shot(args),
        CockpitCommand::Show(args) => (&args.cockpit, Request::Show { window: args.window.clone() }),
        CockpitCommand::Hide(args) => (&args.cockpit, Request::Hide { window: args.window.clone() }),
        CockpitCommand::Raise(args) => (&args.cockpit, Request::Raise { window: args.window.clone() }),
        CockpitCommand::Close(args) => (&args.cockpit, Request::Close { window: args.window.clone() }),
        CockpitCommand::Place(args) => {
            (&args.cockpit, Request::Place { window: args.window.clone(), area: args.area })
        }
        CockpitCommand::Opacity(args) => {
            (&args.cockpit, Request::Opacity { window: args.window.clone(), opacity: args.opacity })
        }
        CockpitCommand::Input(args) => {
            (&args.cockpit, Request::Input { device: args.device.clone(), acts: args.act.acts() })
        }
        CockpitCommand::Motion(args) => (&args.cockpit, Request::Motion { motion: args.motion.into() }),
    };
    match ask(cockpit, &request)?.0 {
        Reply::Done => Ok(Answer::Yes),
        _ => bail!(OTHER_BUILD),
    }
}

fn list(args: &CockpitListArgs) -> anyhow::Result<Answer> {
    let (Reply::Status(status), _) = ask(&args.cockpit, &Request::Status)? else { bail!(OTHER_BUILD) };
    output::json(args.json.as_deref(), &status)?;
    if !output::is_stdout(args.json.as_deref()) {
        output::print(&describe(&status))?;
    }
    Ok(Answer::Yes)
}

fn shot(args: &ShotArgs) -> anyhow::Result<Answer> {
    let request = Request::Shot { output: args.output.clone(), part: args.part };
    let (Reply::Shot(shot), mut rest) = ask(&args.cockpit, &request)? else { bail!(OTHER_BUILD) };
    if shot.bytes > SHOT_BYTES_MAX {
        bail!(OTHER_BUILD);
    }
    let mut png = Vec::new();
    rest.by_ref().take(shot.bytes).read_to_end(&mut png).context("the cockpit does not send the picture")?;
    if png.len() as u64 != shot.bytes {
        bail!("the cockpit hung up amid the picture");
    }
    let mut file = output::create(&args.file)?;
    file.write_all(&png).and_then(|()| file.flush()).with_context(|| output::cannot_write(&args.file))?;
    output::json(args.json.as_deref(), &shot)?;
    if !output::is_stdout(args.json.as_deref()) {
        output::print(&taken(&shot))?;
    }
    Ok(Answer::Yes)
}

fn taken(shot: &Shot) -> String {
    format!("{}: {}, as shown since refresh {}\n", shot.output, shot.size, shot.refresh)
}

/// What to say of an answer that cannot be understood.
const OTHER_BUILD: &str =
    "the cockpit answers something else; takt-compositor --version says whether it is of another build";

/// The answer to a request, and what follows it.
fn ask(cockpit: &CockpitArgs, request: &Request) -> anyhow::Result<(Reply, BufReader<UnixStream>)> {
    let folder: PathBuf = cockpit.folder.clone().unwrap_or_else(takt_ipc::find::cockpit_folder);
    let shown = folder.display();
    let mut stream = UnixStream::connect(folder.join(SOCKET))
        .with_context(|| format!("no cockpit answers in {shown}: start one with takt-compositor FILE"))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let silent = || format!("the cockpit in {shown} does not answer");
    let asked = stream.write_all((serde_json::to_string(request)? + "\n").as_bytes());
    let mut rest = BufReader::new(stream);
    let mut line = String::new();
    let read = rest.by_ref().take(REPLY_BYTES_MAX as u64).read_line(&mut line);
    // One that refuses tools says so without reading what they ask.
    if line.is_empty() {
        asked.with_context(silent)?;
    }
    read.with_context(silent)?;
    match serde_json::from_str(&line).context(OTHER_BUILD)? {
        Reply::Refused { reason } => bail!("{reason}"),
        reply => Ok((reply, rest)),
    }
}

fn describe(status: &Status) -> String {
    let mut said = outputs(&status.outputs);
    if !status.windows.is_empty() {
        said += &format!("\n{}", windows(&status.windows));
    }
    if status.windows.iter().any(|window| window.input.is_some()) {
        said += &format!("\n{}", inputs(&status.windows));
    }
    if !status.programs.is_empty() {
        said += &format!("\n{}", programs(&status.programs));
    }
    let clients = status.clients;
    let clients = if clients == 1 { "1 client".to_owned() } else { format!("{clients} clients") };
    said + &format!("\n{clients}; the vehicle is {}.\n", status.motion.name())
}

fn outputs(outputs: &[OutputStatus]) -> String {
    let mut table = Table::new("<output, size, Hz, refreshes, skipped, composed, late, longest, <scheduled");
    for output in outputs {
        let scheduled = match (output.scheduled, output.guaranteed) {
            (true, true) => "guaranteed",
            (true, false) => "not guaranteed",
            (false, _) => "no daemon",
        };
        table.row(vec![
            output.name.clone(),
            output.size.to_string(),
            format!("{:.2}", output.refresh_hz),
            output.refreshes.to_string(),
            output.skipped.to_string(),
            output.composed.to_string(),
            output.late.to_string(),
            format!("{:.2} ms", Duration::from_nanos(output.longest_ns).as_secs_f64() * 1e3),
            scheduled.to_owned(),
        ]);
    }
    table.render()
}

fn windows(windows: &[WindowStatus]) -> String {
    let mut table = Table::new("<window, number, <domain, pid, <output, <area, opacity, <state, <claims");
    for window in windows {
        let state = match window {
            WindowStatus { frozen: true, .. } => "frozen",
            WindowStatus { output: Some(_), .. } => "shown",
            WindowStatus { name: None, .. } => "no rule",
            WindowStatus { mapped: false, .. } => "no picture",
            _ => "hidden",
        };
        let known = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let opacity = window.output.is_some().then(|| format!("{:.2}", window.opacity));
        table.row(vec![
            known(window.name.clone()),
            format!("#{}", window.id),
            window.domain.clone(),
            window.pid.to_string(),
            known(window.output.clone()),
            known(window.area.map(|area| area.to_string())),
            known(opacity),
            state.to_owned(),
            window.claims.clone(),
        ]);
    }
    table.render()
}

/// How soon windows hear input and answer.
fn inputs(windows: &[WindowStatus]) -> String {
    let mut table = Table::new(
        "<input of, number, <keys, heard, after 99 %, longest, answered, after 99 %, longest, silent",
    );
    for (window, input) in windows.iter().filter_map(|window| Some((window, window.input?))) {
        let ms = |ms: f64| format!("{ms:.2} ms");
        table.row(vec![
            window.name.clone().unwrap_or_else(|| "-".to_owned()),
            format!("#{}", window.id),
            if window.focus { "yes" } else { "no" }.to_owned(),
            input.delivered.to_string(),
            ms(input.delivery_ms_p99),
            ms(input.delivery_ms_max),
            input.answered.to_string(),
            ms(input.response_ms_p99),
            ms(input.response_ms_max),
            input.silent.to_string(),
        ]);
    }
    table.render()
}

fn programs(programs: &[ProgramStatus]) -> String {
    let mut table = Table::new("<program, <domain, pid, starts, <ended");
    for program in programs {
        table.row(vec![
            program.name.clone(),
            program.domain.clone(),
            program.pid.map_or_else(|| "-".to_owned(), |pid| pid.to_string()),
            program.starts.to_string(),
            program.ended.clone().unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use takt_cockpit::control::InputStatus;
    use takt_cockpit::geometry::{Rect, Size};

    #[test]
    fn windows_say_why_they_are_not_shown() {
        let window = |id, name: Option<&str>| WindowStatus {
            id,
            name: name.map(str::to_owned),
            claims: "app_id \"x\"".to_owned(),
            domain: "apps".to_owned(),
            pid: 7,
            mapped: true,
            ..WindowStatus::default()
        };
        let (output, area) = (Some("center".to_owned()), Some(Rect::new(0, 0, 80, 60)));
        let shown = WindowStatus { output, area, opacity: 1.0, ..window(1, Some("map")) };
        let input =
            InputStatus { delivered: 7, answered: 3, response_ms_p99: 16.5, ..InputStatus::default() };
        let shown = WindowStatus { focus: true, input: Some(input), ..shown };
        let output = OutputStatus {
            name: "center".to_owned(),
            size: Size::new(200, 100),
            refresh_hz: 60.0,
            longest_ns: 1_500_000,
            scheduled: true,
            ..OutputStatus::default()
        };
        let status = Status {
            outputs: vec![output],
            windows: vec![
                shown.clone(),
                WindowStatus { frozen: true, input: None, ..shown },
                window(3, Some("radio")),
                WindowStatus { mapped: false, ..window(4, Some("radio")) },
                window(5, None),
            ],
            clients: 1,
            ..Status::default()
        };
        expect![[r#"
            output     size     Hz  refreshes  skipped  composed  late  longest  scheduled
            center  200x100  60.00          0        0         0     0  1.50 ms  not guaranteed

            window  number  domain  pid  output  area       opacity  state       claims
            map         #1  apps      7  center  80x60+0+0     1.00  shown       app_id "x"
            map         #1  apps      7  center  80x60+0+0     1.00  frozen      app_id "x"
            radio       #3  apps      7  -       -                -  hidden      app_id "x"
            radio       #4  apps      7  -       -                -  no picture  app_id "x"
            -           #5  apps      7  -       -                -  no rule     app_id "x"

            input of  number  keys  heard  after 99 %  longest  answered  after 99 %  longest  silent
            map           #1  yes       7     0.00 ms  0.00 ms         3    16.50 ms  0.00 ms       0

            1 client; the vehicle is moving.
        "#]]
        .assert_eq(&describe(&status));
    }
}

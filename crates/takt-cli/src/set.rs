//! `takt set`: changes what running apps get, or says what a change would do.

use anyhow::bail;
use serde_json::Value;
use takt_daemon::control::ask::{Ask, Limits, WrittenTerms};

use crate::args::SetArgs;
use crate::live::{ask, numbered, of, text};
use crate::{Answer, output};

pub(crate) fn run(args: &SetArgs) -> anyhow::Result<Answer> {
    let (path, orders) = (args.socket.path(), orders(args)?);
    let mut refused = false;
    for order in orders {
        if args.dry_run {
            let preview = ask(&path, &Ask::Preview { order: Box::new(order) })?;
            refused |= preview["refused"].is_string();
            output::print(&describe(&preview))?;
        } else {
            let answer = ask(&path, &order)?;
            output::print(&done(&order, &answer))?;
        }
    }
    Ok(if refused { Answer::No } else { Answer::Yes })
}

/// What is to be done, in this order.
fn orders(args: &SetArgs) -> anyhow::Result<Vec<Ask>> {
    let (terms, limits) = (args.terms.terms(), args.common.limits());
    let mut orders: Vec<Ask> = Vec::new();
    orders.extend(args.common.policy.clone().map(|name| Ask::Policy { name }));
    orders.extend(args.common.state.clone().map(|name| Ask::State { name }));
    if limits != Limits::default() {
        orders.push(Ask::Adjust(limits));
    }
    let for_all = !orders.is_empty();
    let app = args.app.as_deref().map(numbered);
    let steering = app.as_deref().and_then(|app| args.steering.order(app));
    let has_terms = terms != WrittenTerms::default();
    match app {
        None if has_terms => bail!("say which app: takt list shows them"),
        Some(_) if for_all => bail!("that is for all apps: name none"),
        Some(app) if has_terms => orders.push(Ask::Set { app, terms }),
        _ => {}
    }
    orders.extend(steering);
    if orders.is_empty() {
        bail!("nothing to set: give --priority, --fps, --etpf-ms, --period-ms or another, or see --help");
    }
    Ok(orders)
}

/// What was done, in words.
fn done(order: &Ask, answer: &Value) -> String {
    match order {
        Ask::Policy { name } => format!("policy: {name}\n"),
        Ask::State { name } => format!("state: {name}\n"),
        Ask::Adjust(_) => "done, for all apps\n".to_owned(),
        Ask::Pause { app } => format!("{app}: paused; takt set {app} --resume lets it go on\n"),
        Ask::Evict { app, .. } => {
            format!("{app}: evicted, it runs on unscheduled; takt set {app} --readmit lets it come back\n")
        }
        Ask::Readmit { app } => format!("{app}: may come back\n"),
        other => {
            let app = other.changed_app().unwrap_or_default();
            format!("{app}: {}\n", of(answer, app).map_or("", |app| text(app, "admission")))
        }
    }
}

/// What an order would do, in words.
fn describe(preview: &Value) -> String {
    if let Some(refused) = preview["refused"].as_str() {
        return format!("It would be refused: {refused}\n");
    }
    let names = |key: &str| -> Vec<&str> {
        preview[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    };
    let (loses, gains) = (names("loses"), names("gains"));
    let mut said = String::new();
    if loses.is_empty() {
        said += "No contract that holds would break.\n";
    } else {
        said += &format!("Would break the contract of: {}\n", loses.join(", "));
    }
    if !gains.is_empty() {
        said += &format!("Would hold from then on: {}\n", gains.join(", "));
    }
    for app in preview["apps"].as_array().into_iter().flatten() {
        if let Some(why) = app["after"]["why_not"].as_str().filter(|_| loses.contains(&text(app, "name"))) {
            said += &format!("  {}: {why}\n", text(app, "name"));
        }
    }
    names("notes").iter().fold(said, |said, note| format!("{said}{note}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_preview_names_those_who_would_lose_and_why() {
        let preview = json!({
            "refused": null, "loses": ["map"], "gains": [], "notes": ["A note."],
            "apps": [
                { "name": "dial", "after": { "why_not": null } },
                { "name": "map", "after": { "why_not": "all down to it claim 110.0 % of the GPU" } },
            ],
        });
        assert_eq!(
            describe(&preview),
            "Would break the contract of: map\n  map: all down to it claim 110.0 % of the GPU\nA note.\n"
        );
        let fine = json!({ "refused": null, "loses": [], "gains": ["map"], "notes": [], "apps": [] });
        assert_eq!(describe(&fine), "No contract that holds would break.\nWould hold from then on: map\n");
        assert_eq!(
            describe(&json!({ "refused": "no app x" })),
            "It would be refused: no app x\n",
            "and nothing else"
        );
    }
}

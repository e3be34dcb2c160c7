//! `clickbox account`: shows the accounts of the places through which packets pass.

use std::collections::BTreeSet;
use std::process::ExitCode;

use api::{AccountPlace, AccountQuery, AccountReport, AccountRow, operation};
use clap::Args;
use clap_complete::engine::ArgValueCompleter;

use crate::error::CommandError;
use crate::number_format::grouped;
use crate::online::{self, Column, Connection, Table};
use crate::output;
use crate::wrap::wrap;

/// Show where packets are, and where they stayed.
///
/// Prints a line for each place through which packets pass: ports, switches, pipes, rings, and boxes. For each place, IN
/// and MADE together equal OUT, LOST, DISCARDED, DELIVERED, CONSUMED and WAITING. Each number is measured on its own, so
/// DIFF shows whether that is so: it is 0 at rest, and at most MOVED while packets pass, which is how many passed during
/// the reading. Numbers in a line with `*` are in part the word of the box itself. Below the table are the reasons of the
/// losses, with what they mean and what to do.
///
/// With a fabric for each owner, `proxy SWITCH@OWNER` connects the boxes of another owner to a shared switch, by the link
/// `SWITCH/PORT - SWITCH@OWNER`.
///
/// `ended BOX` has the packets of the earlier runs of a box: those in its rings and inside it when it ended are lost, as
/// `box_ended` and `in_ended_box`. What else became of packets is known up to the last turn of each run: DIFF is at most
/// MOVED, which is how many packets passed in these turns. Losses with `~` are estimates: some of them have reasons that a
/// function declared, and these are known as the box last reported them.
#[derive(Args)]
#[command(after_help = "Example: clickbox account fw --elements")]
pub(crate) struct Arguments {
    /// Name of a stack, a box, a switch, a service or a chain; if several have it, `stack/NAME`, `box/NAME`, `switch/NAME`,
    /// `service/NAME` or `chain/SWITCH/NAME`. A service is shown with its instances, and a chain with its services, without
    /// its switch and other chains. All places if absent.
    #[arg(value_name = "NAME", add = ArgValueCompleter::new(online::boxes_and_switches))]
    name: Option<String>,
    /// Print a line for each element of the boxes too.
    #[arg(long, short)]
    elements: bool,
    /// Print JSON: the report, with losses by reason.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

const COLUMNS: &[Column] = &[
    Column::flexible("PLACE", 12),
    Column::number("IN"),
    Column::number("MADE"),
    Column::number("OUT"),
    Column::number("LOST"),
    Column::number("DISCARDED"),
    Column::number("DELIVERED"),
    Column::number("CONSUMED"),
    Column::number("WAITING"),
    Column::number("DIFF"),
    Column::number("MOVED"),
];

/// Runs it.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, CommandError> {
    let query = AccountQuery { subject: arguments.name.clone(), elements: arguments.elements };
    let report = arguments.daemon.client()?.call(&operation::ACCOUNT, &[], &query, &())?;
    if arguments.json {
        output::json(&report);
        return Ok(ExitCode::SUCCESS);
    }
    let table = Table { columns: COLUMNS, rows: report.places.iter().map(row).collect() };
    let none = match &arguments.name {
        Some(name) => format!("packets pass no place of {name} yet"),
        None => "there are no ports, switches and boxes yet".into(),
    };
    online::print(&table, &none);
    output::text(&notes(&report));
    Ok(ExitCode::SUCCESS)
}

/// The place, with a mark if a number is the box's own word.
fn place(row: &AccountRow) -> String {
    let mark = if row.own_word { " *" } else { "" };
    let indent = if matches!(row.place, AccountPlace::Element { .. }) { "  " } else { "" };
    format!("{indent}{}{mark}", online::line(&row.place.to_string()))
}

fn row(row: &AccountRow) -> Vec<String> {
    let known = |count: Option<u64>| count.map_or("?".into(), shown);
    let lost = match row.estimated {
        true => format!("~{}", grouped(row.lost())),
        false => shown(row.lost()),
    };
    vec![
        place(row),
        known(row.incoming),
        shown(row.made),
        known(row.out),
        lost,
        shown(row.discarded),
        shown(row.delivered),
        shown(row.consumed),
        known(row.waiting),
        row.difference.map_or("?".into(), |difference| difference.to_string()),
        shown(row.moved),
    ]
}

fn shown(count: u64) -> String {
    match count {
        0 => "-".into(),
        count => grouped(count),
    }
}

/// What the table has no room for: the reasons of losses with their meanings, and the time of the reading.
fn notes(report: &AccountReport) -> String {
    let mut text = String::new();
    for row in report.places.iter().filter(|row| !row.lost.is_empty()) {
        let reasons: Vec<String> =
            row.lost.iter().map(|(reason, count)| format!("{} {reason}", grouped(*count))).collect();
        text += &online::line(&format!("lost at {}: {}", row.place, reasons.join(", ")));
        text.push('\n');
    }
    // Reasons of users' functions, and of a newer daemon, have no description here.
    let reasons: BTreeSet<&str> =
        sorting::collect(report.places.iter().flat_map(|row| row.lost.keys().map(String::as_str)));
    for reason in reasons.into_iter().filter_map(reason::Reason::find) {
        let meaning = format!("{}: {} {}", reason.name(), reason.summary(), reason.remedy());
        text += &format!("  {}\n", wrap(&meaning, 2));
    }
    if report.places.iter().any(|row| row.own_word) {
        text += "* in part the word of the box itself\n";
    }
    if report.places.iter().any(|row| row.estimated) {
        text += "~ in part the last report of a box that has ended\n";
    }
    text + &format!("read in {:.1} ms\n", report.took_ns as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_explained_once() {
        let row = |name: &str| {
            let mut row = AccountRow::new(AccountPlace::Switch { switch: name.parse().expect("a name") });
            row.lost =
                [("no_instance", 2), ("user:x/y", 1)].map(|(reason, count)| (reason.into(), count)).into();
            row
        };
        let text = notes(&AccountReport {
            time: api::Time::now(),
            places: vec![row("lan"), row("wan")],
            took_ns: 1_000_000,
        });
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            [lines[0], lines[1], lines[lines.len() - 1]],
            [
                "lost at switch lan: 2 no_instance, 1 user:x/y",
                "lost at switch wan: 2 no_instance, 1 user:x/y",
                "read in 1.0 ms"
            ]
        );
        let explained: Vec<&&str> = lines.iter().filter(|line| line.contains(": The service that")).collect();
        assert_eq!(explained.len(), 1, "{text}");
    }
}

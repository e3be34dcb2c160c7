//! `clickbox doctor`: checks whether this machine can run boxes.

use std::fmt::Write;
use std::process::ExitCode;

use api::client::ClientError;
use api::{HostStatus, Isolation, operation};
use clap::Args;
use serde::Serialize;

use crate::color::Palette;
use crate::error::CommandError;
use crate::host::{self, CheckResult, Grade};
use crate::online::{self, Connection};
use crate::output;
use crate::wrap::wrap;

/// Check whether this machine can run boxes.
///
/// Lists what works, what is missing, and how to fix it. Starts a box in each sandbox and sends it a packet. Needs no
/// daemon, but includes the status of a running one. Exits with 1 if boxes can't run here at all.
#[derive(Args)]
#[command(after_help = "Example: clickbox doctor")]
pub(crate) struct Arguments {
    /// Print JSON: {"boxes": whether they can run, "findings": [...], "daemon": its status or null}.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: Connection,
}

#[derive(Serialize)]
struct Report {
    boxes: bool,
    findings: Vec<CheckResult>,
    daemon: Option<HostStatus>,
}

/// Runs it.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, CommandError> {
    let client = arguments.daemon.client()?;
    let mut findings = host::run();
    let boxes = host::can_run(&findings);
    let daemon = match client.ask(&operation::HOST, &[]) {
        Ok(status) => {
            let sandbox = status.sandboxes.first().map_or("nothing", |sandbox| online::sandbox(*sandbox));
            let found = format!("{} at {}, runs boxes as {sandbox}", status.version, client.address());
            findings.push(match status.remarks.as_slice() {
                [] => CheckResult::good("daemon", found),
                remarks => CheckResult::limited("daemon", found, remarks.join("; ")),
            });
            findings.extend(status.fabrics.iter().map(|fabric| {
                let of = fabric.owner.as_ref().map_or(String::new(), |owner| format!(" of owner {owner}"));
                CheckResult::good("fabric", format!("{} in process {}{of}", fabric.version, fabric.pid))
            }));
            findings.push(isolation(&status.isolation));
            Some(status)
        }
        Err(error @ CommandError::Client(ClientError::NoDaemon { .. })) => {
            findings.push(CheckResult::limited("daemon", "none", error.text()));
            None
        }
        Err(error) => {
            findings.push(CheckResult::missing("daemon", "its reply is invalid", error.text()));
            None
        }
    };
    if arguments.json {
        output::json(&Report { boxes, findings, daemon });
    } else {
        output::text(&text(&findings, boxes, Palette::of(&std::io::stdout())));
    }
    Ok(ExitCode::from(u8::from(!boxes)))
}

/// What isolates boxes in processes, which the spawner of a running daemon's fabric has found out.
fn isolation(isolation: &Isolation) -> CheckResult {
    let (held, missing) = (isolation.layers.len(), &isolation.missing);
    let found = format!("{held} of {} layers around boxes in processes", held + missing.len());
    if missing.is_empty() {
        return CheckResult::good("isolation", found);
    }
    let reasons: Vec<String> =
        missing.iter().map(|missing| format!("{}: {}", missing.layer, missing.reason)).collect();
    CheckResult::limited("isolation", found, format!("boxes run without {}", reasons.join("; ")))
}

/// Width of the column of names.
const NAME_WIDTH: usize = 18;

fn text(findings: &[CheckResult], boxes: bool, palette: Palette) -> String {
    let mut text = String::new();
    for finding in findings {
        let (mark, color) = match finding.grade {
            Grade::Good => ("ok", palette.green),
            Grade::Limited => ("--", palette.yellow),
            Grade::Missing => ("no", palette.red),
        };
        let plain = palette.plain;
        let wrapped = |text: &str, indent: usize| wrap(&online::line(text), indent);
        let found = wrapped(&finding.found, 4 + NAME_WIDTH);
        let _ = writeln!(text, "{color}{mark}{plain}  {:<NAME_WIDTH$}{found}", finding.name);
        if !finding.advice.is_empty() {
            let _ = writeln!(text, "{:1$}{2}", "", 6 + NAME_WIDTH, wrapped(&finding.advice, 6 + NAME_WIDTH));
        }
    }
    text += match boxes {
        true => "\nBoxes can run here.\n",
        false => "\nBoxes can't run here: neither virtual machines nor processes work.\n",
    };
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_lines_with_advice_below() {
        let findings = [
            CheckResult::good("kvm", "/dev/kvm opens"),
            CheckResult::limited("daemon", "none", "start\x1b one"),
            CheckResult::missing("tap devices", "no", "get them ".repeat(20)),
        ];
        let text = text(&findings, true, Palette::NONE);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines.first(), Some(&vec!["ok", "kvm", "/dev/kvm", "opens"]));
        assert_eq!(lines.get(2), Some(&vec!["start\\u{1b}", "one"]));
        assert_eq!(lines.len(), 10);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}

//! The first page of the help, with the commands in groups.

use clap::Command;

use crate::error::EXIT_CODES;
use crate::wrap::wrap;

/// The groups, and their commands in order.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "Configurations (no daemon needed)",
        &["run", "check", "fmt", "flatten", "graph", "element", "click", "generate", "bench"],
    ),
    (
        "Boxes",
        &[
            "create",
            "ps",
            "top",
            "show",
            "logs",
            "files",
            "read",
            "write",
            "handlers",
            "install",
            "reload",
            "uninstall",
            "save",
            "start",
            "stop",
            "suspend",
            "resume",
            "kill",
            "restart",
            "rm",
        ],
    ),
    ("Networks", &["switch", "port", "address", "flow", "service", "chain", "capture", "events", "account"]),
    ("Functions of one's own", &["function"]),
    (
        "Stacks (boxes and switches defined in one file)",
        &["up", "diff", "export", "confirm", "rollback", "down", "stacks"],
    ),
    (
        "Setup",
        &[
            "demo",
            "daemon",
            "upgrade",
            "fabric",
            "token",
            "audit",
            "store",
            "launcher",
            "doctor",
            "completion",
        ],
    ),
];

/// Width of the column of names.
const NAME_WIDTH: usize = 12;

/// The program with its commands in groups.
pub(crate) fn grouped(program: Command) -> Command {
    let complete = complete(&program);
    let mut text = String::new();
    for (title, names) in GROUPS {
        text += &format!("{title}:\n");
        for name in *names {
            let about = complete.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            text += &format!("  {name:<NAME_WIDTH$}{}\n", wrap(about.trim_end_matches('.'), 2 + NAME_WIDTH));
        }
        text.push('\n');
    }
    text += &format!("Run `clickbox COMMAND --help` for details and an example.\n\n{EXIT_CODES}");
    program.help_template("{about-with-newline}\n{usage-heading} {usage}{after-help}").after_help(text)
}

/// The program with what its commands say about themselves, and their arguments.
fn complete(program: &Command) -> Command {
    let mut complete = program.clone().disable_help_subcommand(true);
    complete.build();
    complete
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use std::collections::BTreeSet;

    #[test]
    fn every_command_is_in_one_group() {
        let program = complete(&crate::Arguments::command());
        let visible = program.get_subcommands().filter(|command| !command.is_hide_set());
        let commands: BTreeSet<&str> = visible.map(Command::get_name).collect();
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        assert_eq!(
            grouped.len(),
            grouped.iter().collect::<BTreeSet<_>>().len(),
            "a command is in two groups"
        );
        assert_eq!(commands, grouped.into_iter().collect());
    }

    #[test]
    fn each_command_takes_one_line() {
        let help = grouped(crate::Arguments::command()).render_help().to_string();
        for line in help.lines() {
            assert!(line.chars().count() <= crate::wrap::WIDTH, "{line}");
            assert!(!line.starts_with(&" ".repeat(2 + NAME_WIDTH)), "the line above {line:?} is too long");
        }
    }

    #[test]
    fn each_command_has_a_summary_of_its_own() {
        let program = complete(&crate::Arguments::command());
        let mut summaries = BTreeSet::new();
        for command in program.get_subcommands() {
            let summary = command.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(
                summaries.insert(summary.clone()),
                "{}: {summary:?} is that of another command",
                command.get_name()
            );
        }
    }

    #[test]
    fn every_command_has_an_example_and_prints_json() {
        fn check(command: &Command, path: &str) {
            for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
                let path = format!("{path} {}", command.get_name());
                check(command, &path);
                if path != " click" {
                    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
                    assert!(help.contains(&format!("clickbox{path}")), "{path}: {help:?}");
                    let has_json =
                        command.get_arguments().any(|argument| argument.get_long() == Some("json"));
                    assert!(has_json || command.has_subcommands(), "{path} has no --json");
                }
                assert!(command.get_about().is_some(), "{path} says nothing about itself");
            }
        }
        let program = complete(&crate::Arguments::command());
        check(&program, "");
    }
}

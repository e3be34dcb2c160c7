//! `clickbox element`: the element reference, generated from the code.

use std::ffi::OsStr;
use std::fmt::Write;
use std::process::ExitCode;

use clap::Args;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use element::{ArgumentInfo, Class, ClassDocumentation, Fate, HandlerKind, Reason, ShardMode};
use serde::Serialize;

use crate::components;
use crate::configuration::registry;
use crate::error::CommandError;
use crate::output;

/// List the element classes, or show the reference of one.
#[derive(Args)]
#[command(after_help = "Example: clickbox element IPFilter")]
pub(crate) struct Arguments {
    /// Element class. Without it, list all classes.
    #[arg(add = ArgValueCompleter::new(names))]
    name: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Print Markdown.
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
}

/// Shell completions for a class name.
fn names(current: &OsStr) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    let classes = registry().classes().map(|class| class.info.name);
    classes.filter(|name| name.starts_with(&*current)).map(CompletionCandidate::new).collect()
}

#[derive(Serialize)]
struct Entry {
    name: &'static str,
    aliases: Vec<&'static str>,
    group: &'static str,
    summary: &'static str,
    description: &'static str,
    ports: &'static str,
    processing: &'static str,
    flow: &'static str,
    shards: &'static str,
    arguments: Vec<Argument>,
    handlers: Vec<Handler>,
    fates: Vec<PacketFate>,
    drops: Vec<Drop>,
    example: &'static str,
    expect: &'static str,
    see: &'static [&'static str],
}

#[derive(Serialize)]
struct Argument {
    keyword: &'static str,
    position: Option<usize>,
    required: bool,
    repeated: bool,
    kind: &'static str,
    default: Option<&'static str>,
    summary: &'static str,
}

#[derive(Serialize)]
struct Handler {
    name: std::borrow::Cow<'static, str>,
    access: &'static str,
    summary: &'static str,
}

/// What the element does with packets, apart from passing them on.
#[derive(Serialize)]
struct PacketFate {
    fate: &'static str,
    summary: &'static str,
}

#[derive(Serialize)]
struct Drop {
    reason: &'static str,
    summary: &'static str,
    remedy: &'static str,
}

impl Entry {
    fn new(class: &Class, page: &ClassDocumentation) -> Entry {
        let info = class.info;
        let mut positions = 0..;
        let argument = |(argument, summary): (&ArgumentInfo, &'static str)| Argument {
            keyword: argument.keyword,
            position: argument.positional.then(|| positions.next()).flatten(),
            required: argument.required,
            repeated: argument.repeated,
            kind: argument.kind,
            default: (!argument.default.is_empty()).then_some(argument.default),
            summary,
        };
        Entry {
            name: info.name,
            aliases: info
                .aliases
                .iter()
                .copied()
                .chain(info.other_names.iter().map(|other| other.name))
                .collect(),
            group: info.group,
            summary: page.summary,
            description: page.description,
            ports: info.ports,
            processing: info.processing,
            flow: info.flow,
            shards: match info.shards.mode {
                ShardMode::Never => "one only",
                ShardMode::Independent => "independent",
                ShardMode::Sum => "summed",
                ShardMode::Divide => "divided",
                ShardMode::First => "in the first",
            },
            arguments: info.arguments().zip(page.arguments()).map(argument).collect(),
            handlers: handlers(class),
            fates: info.fates.iter().map(|fate| PacketFate::new(*fate)).collect(),
            drops: info.drops.iter().map(|reason| Drop::new(*reason)).collect(),
            example: page.example,
            expect: page.expect,
            see: page.see,
        }
    }

    /// The reference page in Markdown.
    fn markdown(&self) -> String {
        let mut page = String::new();
        let _ = writeln!(page, "# {}\n\n{}\n", self.name, self.summary);
        if !self.description.is_empty() {
            let _ = writeln!(page, "{}\n", self.description);
        }
        let aliases = if self.aliases.is_empty() {
            String::new()
        } else {
            format!(" · also {}", self.aliases.join(", "))
        };
        let _ = writeln!(
            page,
            "Group {} · ports {} · processing {} · shards: {}{aliases}\n",
            self.group, self.ports, self.processing, self.shards
        );
        if !self.arguments.is_empty() {
            let _ = writeln!(page, "## Arguments\n");
            for argument in &self.arguments {
                let position = argument
                    .position
                    .map_or_else(String::new, |position| format!(", position {}", position + 1));
                let needed = match (argument.required, argument.default) {
                    (true, _) => ", required".to_string(),
                    (false, Some(default)) => format!(", default `{default}`"),
                    (false, None) => String::new(),
                };
                let many = if argument.repeated { ", any number" } else { "" };
                let _ = writeln!(
                    page,
                    "- `{}` ({}{position}{needed}{many}): {}",
                    argument.keyword, argument.kind, argument.summary
                );
            }
            page.push('\n');
        }
        if !self.handlers.is_empty() {
            let _ = writeln!(page, "## Handlers\n");
            for handler in &self.handlers {
                let _ = writeln!(page, "- `{}` ({}): {}", handler.name, handler.access, handler.summary);
            }
            page.push('\n');
        }
        if self.ports != "0/0" || !self.fates.is_empty() {
            let _ = writeln!(page, "## Packets\n");
            if self.fates.is_empty() {
                let _ = writeln!(page, "All packets pass unchanged.");
            }
            for PacketFate { fate, summary } in &self.fates {
                let _ = writeln!(page, "- *{fate}*: {summary}");
            }
            page.push('\n');
        }
        if !self.drops.is_empty() {
            let _ = writeln!(page, "## Drops\n");
            for Drop { reason, summary, remedy } in &self.drops {
                let _ = writeln!(page, "- `{reason}`: {summary} {remedy}");
            }
            page.push('\n');
        }
        let _ = writeln!(page, "## Example\n\n```click\n{}```\n", self.example);
        if !self.expect.is_empty() {
            let _ = writeln!(page, "ends with\n\n```\n{}```\n", self.expect);
        }
        if !self.see.is_empty() {
            let _ = writeln!(page, "See also {}.", self.see.join(", "));
        }
        page
    }
}

impl PacketFate {
    fn new(fate: Fate) -> PacketFate {
        PacketFate { fate: fate.name(), summary: fate.summary() }
    }
}

impl Drop {
    fn new(reason: Reason) -> Drop {
        Drop { reason: reason.name(), summary: reason.summary(), remedy: reason.remedy() }
    }
}

/// The handlers of a class. One entry stands for each numbered group.
fn handlers(class: &Class) -> Vec<Handler> {
    let own = class.handlers().into_iter().map(|handler| Handler {
        name: handler.name,
        access: if handler.kind == HandlerKind::Write { "write" } else { "read" },
        summary: handler.summary,
    });
    let numbered = class.numbered.map(|(prefix, summary)| Handler {
        name: format!("{prefix}N").into(),
        access: "read, write",
        summary,
    });
    own.chain(numbered).collect()
}

/// Runs it.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, CommandError> {
    let Some(name) = &arguments.name else {
        list(arguments);
        return Ok(ExitCode::SUCCESS);
    };
    let Some(class) = registry().find(name) else {
        let similar = click_lang::nearest(name, registry().classes().map(|class| class.info.name));
        return Err(CommandError::NoClass { name: name.clone(), similar });
    };
    let Some(page) = documentation(class.info.name) else {
        return Err(CommandError::Undocumented(class.info.name));
    };
    let entry = Entry::new(class, page);
    if arguments.json {
        output::json(&entry);
    } else {
        output::text(&entry.markdown());
    }
    Ok(ExitCode::SUCCESS)
}

/// The documentation of the class of this name, which is not an alias.
fn documentation(name: &str) -> Option<&'static ClassDocumentation> {
    components::get().documentation.iter().copied().flatten().copied().find(|page| page.name == name)
}

/// The entries of all classes, in the order of the registry.
fn entries() -> impl Iterator<Item = Entry> {
    let parts = components::get();
    let classes = parts.classes.iter().copied().flatten();
    classes.zip(parts.documentation.iter().copied().flatten()).map(|(class, page)| Entry::new(class, page))
}

fn list(arguments: &Arguments) {
    if arguments.json {
        let entries: Vec<Entry> = entries().collect();
        return output::json(&entries);
    }
    if arguments.markdown {
        let pages: Vec<String> = entries().map(|entry| entry.markdown()).collect();
        return output::text(&pages.join("\n"));
    }
    let mut text = String::new();
    let mut group = "";
    for entry in entries() {
        if entry.group != group {
            group = entry.group;
            let _ = writeln!(text, "\n{group}");
        }
        let _ = writeln!(text, "  {:<24} {}", entry.name, entry.summary);
    }
    output::text(text.trim_start());
}

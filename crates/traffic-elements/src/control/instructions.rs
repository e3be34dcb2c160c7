//! The instructions of a script and their parser.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use element::arguments::FromArgument;
use element::text::next_word;
use element::{Setup, SetupError};

/// The target of a jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// An instruction.
    At(usize),
    /// Ends the script.
    Finish(Finish),
}

/// How a script ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finish {
    End,
    Exit,
    Stop,
    Error,
    Return,
}

/// Options of `print` and its variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Printing {
    /// Whether to append a newline.
    pub(super) line: bool,
    /// Whether to unquote a handler's parameter.
    pub(super) unquote: bool,
}

/// An instruction. Its texts are expanded when it is executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Instruction {
    /// Precedes the first instruction of a script that starts automatically.
    Initial,
    /// Waits for this number of steps.
    Pause {
        steps: u32,
    },
    /// Waits for a time or a step.
    Wait {
        time: String,
    },
    Write {
        call: String,
        unquote: bool,
    },
    Read {
        call: String,
        unquote: bool,
    },
    Print {
        text: String,
        how: Printing,
    },
    /// `save` and `append`: the file and the handler call.
    Save {
        file: String,
        append: bool,
        call: String,
    },
    Set {
        variable: String,
        text: String,
        unquote: bool,
    },
    /// `init` and `export`: executed only at the start.
    Initialise {
        variable: String,
        text: String,
        unquote: bool,
        export: bool,
    },
    Label {
        name: String,
    },
    Goto {
        target: Target,
        condition: String,
    },
    Return {
        text: String,
        unquote: bool,
    },
    Error {
        text: String,
        unquote: bool,
    },
    Finish(Finish),
}

/// Parses the arguments of a script; `driver` scripts end with `stop`.
pub(super) fn parse(
    arguments: &[String],
    driver: bool,
    setup: &Setup,
) -> Result<Vec<Instruction>, SetupError> {
    let mut instructions = Vec::new();
    let mut gotos = Vec::new();
    let mut errors = SetupError::default();
    for argument in arguments {
        let mut rest = argument.as_str();
        let Some(word) = next_word(&mut rest) else { continue };
        let Some(parsed) = instruction(name_of(word, setup), rest, setup) else {
            errors.merge(SetupError::new(format!("syntax error at ‘{word}’")));
            continue;
        };
        let waits = matches!(parsed, Instruction::Pause { .. } | Instruction::Wait { .. });
        if instructions.is_empty() && !waits {
            instructions.push(Instruction::Initial);
        }
        if let Instruction::Goto { condition, .. } = &parsed
            && !condition.is_empty()
        {
            gotos.push((instructions.len(), condition.clone()));
        }
        instructions.push(parsed);
    }
    let own_labels = labels(&instructions);
    for (index, text) in gotos {
        let mut rest = text.as_str();
        let label = next_word(&mut rest).unwrap_or("");
        let own = own_labels.get(label).map(|at| Target::At(*at));
        match own.or_else(|| common_label(label)).or_else(|| numbered(label, setup)) {
            Some(target) => {
                if let Some(goto) = instructions.get_mut(index) {
                    *goto = Instruction::Goto { target, condition: rest.to_owned() };
                }
            }
            None => errors.merge(SetupError::new(format!("no such label ‘{label}’"))),
        }
    }
    if instructions.is_empty() {
        instructions.push(if driver { Instruction::Pause { steps: 1 } } else { Instruction::Initial });
    }
    instructions.push(Instruction::Finish(if driver { Finish::Stop } else { Finish::End }));
    errors.into_result()?;
    Ok(instructions)
}

/// The instructions by their numbers in Click, from 1.
const NUMBERED: &[&str] = &[
    "wait_step",
    "wait_time",
    "print",
    "printq",
    "printn",
    "printnq",
    "read",
    "readq",
    "write",
    "writeq",
    "set",
    "setq",
    "init",
    "initq",
    "export",
    "exportq",
    "save",
    "append",
    "label",
    "goto",
    "return",
    "returnq",
    "wait",
    "loop",
];

/// The name of an instruction, which may be given by number.
fn name_of<'w>(word: &'w str, setup: &Setup) -> &'w str {
    match i32::from_argument(word, setup) {
        Ok(-1) => "exit",
        Ok(-2) => "end",
        Ok(-3) => "stop",
        Ok(-4) => "error",
        Ok(-5) => "errorq",
        Ok(number) => {
            let index = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
            index.and_then(|index| NUMBERED.get(index)).copied().unwrap_or("")
        }
        Err(_) => word,
    }
}

/// The jump target for a numeric label of an instruction that ends the script.
fn numbered(label: &str, setup: &Setup) -> Option<Target> {
    let number = i32::from_argument(label, setup).ok().filter(|number| *number < 0)?;
    Some(Target::Finish(match number {
        -2 => Finish::End,
        -3 => Finish::Stop,
        -4 | -5 => Finish::Error,
        _ => Finish::Exit,
    }))
}

/// Finds a label: one of the script's, or one that every script has.
pub(super) fn find_label(instructions: &[Instruction], label: &str) -> Option<Target> {
    let own = instructions.iter().position(|it| matches!(it, Instruction::Label { name } if name == label));
    own.map(Target::At).or_else(|| common_label(label))
}

/// The first instruction with each label.
fn labels(instructions: &[Instruction]) -> BTreeMap<String, usize> {
    let mut labels = BTreeMap::new();
    for (index, instruction) in instructions.iter().enumerate() {
        if let Instruction::Label { name } = instruction {
            labels.entry(name.clone()).or_insert(index);
        }
    }
    labels
}

/// A label that every script has.
fn common_label(label: &str) -> Option<Target> {
    match label {
        "end" => Some(Target::Finish(Finish::End)),
        "exit" => Some(Target::Finish(Finish::Exit)),
        "stop" => Some(Target::Finish(Finish::Stop)),
        "error" | "errorq" => Some(Target::Finish(Finish::Error)),
        "begin" | "loop" => Some(Target::At(0)),
        _ => None,
    }
}

fn instruction(name: &str, rest: &str, setup: &Setup) -> Option<Instruction> {
    let text = rest.to_owned();
    let unquote = name.ends_with('q');
    Some(match name {
        "pause" | "wait_step" | "wait_stop" => Instruction::Pause { steps: steps(rest, setup)? },
        "wait" if rest.is_empty() => Instruction::Pause { steps: 1 },
        "wait" | "wait_time" | "wait_for" => Instruction::Wait { time: text },
        "write" | "writeq" => Instruction::Write { call: text, unquote },
        "read" | "readq" => Instruction::Read { call: text, unquote },
        "print" | "printq" => Instruction::Print { text, how: Printing { line: true, unquote } },
        "printn" | "printnq" => Instruction::Print { text, how: Printing { line: false, unquote } },
        "save" | "append" => {
            let mut rest = rest;
            let call = next_word(&mut rest).unwrap_or("").to_owned();
            let file = if rest.is_empty() { "-".to_owned() } else { rest.to_owned() };
            Instruction::Save { file, append: name == "append", call }
        }
        "set" | "setq" => {
            let (variable, text) = variable(rest)?;
            if text.is_empty() {
                return None;
            }
            Instruction::Set { variable, text, unquote }
        }
        "init" | "initq" | "export" | "exportq" => {
            let (variable, text) = variable(rest)?;
            Instruction::Initialise { variable, text, unquote, export: name.starts_with("export") }
        }
        "label" => {
            let (name, more) = variable(rest)?;
            if !more.is_empty() {
                return None;
            }
            Instruction::Label { name }
        }
        // The label is resolved when all are known; without a label, the loop starts at the beginning.
        "goto" => Instruction::Goto { target: Target::At(0), condition: text },
        "loop" if rest.is_empty() => Instruction::Goto { target: Target::At(0), condition: String::new() },
        "return" | "returnq" => Instruction::Return { text, unquote },
        "error" | "errorq" => Instruction::Error { text, unquote },
        "end" if rest.is_empty() => Instruction::Finish(Finish::End),
        "exit" if rest.is_empty() => Instruction::Finish(Finish::Exit),
        "stop" if rest.is_empty() => Instruction::Finish(Finish::Stop),
        _ => return None,
    })
}

fn steps(rest: &str, setup: &Setup) -> Option<u32> {
    if rest.is_empty() { Some(1) } else { u32::from_argument(rest, setup).ok() }
}

fn variable(rest: &str) -> Option<(String, String)> {
    let mut rest = rest;
    let name = next_word(&mut rest)?.to_owned();
    Some((name, rest.to_owned()))
}

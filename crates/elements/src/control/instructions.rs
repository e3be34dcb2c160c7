//! The instructions of a script, and their text.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use element::SetupError;
use element::text::next_word;

/// Where a jump leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// An instruction.
    At(usize),
    /// Ends the script in one of its ways.
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

/// What `print` and its kin do with the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Printing {
    /// Whether a line end is added.
    pub(super) line: bool,
    /// Whether a handler's parameter is unquoted.
    pub(super) unquote: bool,
}

/// One instruction; texts are expanded when it is executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Instruction {
    /// Holds the place before the first instruction of a script that starts by itself.
    Initial,
    /// Waits to be stepped so many times.
    Pause {
        steps: u32,
    },
    /// Waits for a time, or a step.
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
    /// `save` and `append`: the file, and the handler call.
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
    /// `init` and `export`: happens at the start only.
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

/// Parses the arguments of a script; `driver` scripts end by stopping.
pub(super) fn parse(arguments: &[String], driver: bool) -> Result<Vec<Instruction>, SetupError> {
    let mut instructions = Vec::new();
    let mut gotos = Vec::new();
    let mut errors = SetupError::default();
    for argument in arguments {
        let mut rest = argument.as_str();
        let Some(name) = next_word(&mut rest) else { continue };
        match instruction(name, rest) {
            Some(parsed) => {
                let waits = matches!(parsed, Instruction::Pause { .. } | Instruction::Wait { .. });
                if instructions.is_empty() && !waits {
                    instructions.push(Instruction::Initial);
                }
                if name == "goto" || name == "loop" {
                    let mut rest = rest;
                    let label = if name == "loop" { "loop" } else { next_word(&mut rest).unwrap_or("") };
                    gotos.push((instructions.len(), label.to_owned(), rest.to_owned()));
                }
                instructions.push(parsed);
            }
            None => errors.merge(SetupError::new(format!("syntax error at ‘{name}’"))),
        }
    }
    for (place, label, condition) in gotos {
        match find_label(&instructions, &label) {
            Some(target) => {
                if let Some(goto) = instructions.get_mut(place) {
                    *goto = Instruction::Goto { target, condition };
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

/// Where a label is: one of the script's, or one of those that every script has.
pub(super) fn find_label(instructions: &[Instruction], label: &str) -> Option<Target> {
    let own = instructions.iter().position(|it| matches!(it, Instruction::Label { name } if name == label));
    own.map(Target::At).or(match label {
        "end" => Some(Target::Finish(Finish::End)),
        "exit" => Some(Target::Finish(Finish::Exit)),
        "stop" => Some(Target::Finish(Finish::Stop)),
        "error" | "errorq" => Some(Target::Finish(Finish::Error)),
        "begin" | "loop" => Some(Target::At(0)),
        _ => None,
    })
}

fn instruction(name: &str, rest: &str) -> Option<Instruction> {
    let text = rest.to_owned();
    let unquote = name.ends_with('q');
    Some(match name {
        "pause" | "wait_step" | "wait_stop" => Instruction::Pause { steps: steps(rest)? },
        "wait" if rest.is_empty() => Instruction::Pause { steps: 1 },
        "wait" | "wait_time" | "wait_for" => Instruction::Wait { time: text },
        "write" | "writeq" => Instruction::Write { call: text, unquote },
        "read" | "readq" => Instruction::Read { call: text, unquote },
        "print" | "printq" => Instruction::Print { text, how: Printing { line: true, unquote } },
        "printn" | "printnq" => Instruction::Print { text, how: Printing { line: false, unquote } },
        "save" | "append" => {
            let mut rest = rest;
            let call = next_word(&mut rest)?.to_owned();
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
        "goto" => Instruction::Goto { target: Target::At(0), condition: String::new() },
        "loop" if rest.is_empty() => Instruction::Goto { target: Target::At(0), condition: String::new() },
        "return" | "returnq" => Instruction::Return { text, unquote },
        "error" | "errorq" => Instruction::Error { text, unquote },
        "end" if rest.is_empty() => Instruction::Finish(Finish::End),
        "exit" if rest.is_empty() => Instruction::Finish(Finish::Exit),
        "stop" if rest.is_empty() => Instruction::Finish(Finish::Stop),
        _ => return None,
    })
}

fn steps(rest: &str) -> Option<u32> {
    if rest.is_empty() { Some(1) } else { rest.parse().ok() }
}

fn variable(rest: &str) -> Option<(String, String)> {
    let mut rest = rest;
    let name = next_word(&mut rest)?.to_owned();
    Some((name, rest.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_errors() {
        let script = |text: &str| {
            let arguments: Vec<String> = text.split(';').map(Into::into).collect();
            parse(&arguments, false)
        };
        let parsed = script("label a; goto a $x; goto end").expect("a good script");
        assert_eq!(parsed[2], Instruction::Goto { target: Target::At(1), condition: "$x".into() });
        assert_eq!(
            parsed[3],
            Instruction::Goto { target: Target::Finish(Finish::End), condition: String::new() }
        );
        let errors = script("jump; goto nowhere; set x").expect_err("a bad script");
        assert_eq!(errors.messages.len(), 3);
    }
}

//! `AnnotationInfo`: names for annotations.

use element::arguments::{AnnotationField, Raw};
use element::prelude::*;
use element::{NameKind, text};
use packet::annotation;

use super::problems::Problems;

/// Defines names for annotations. Each argument is `NAME OFFSET [SIZE]`, or `CHECK_OVERLAP NAME...`.
///
/// OFFSET is a byte offset or the name of another annotation; SIZE is in bytes. `CHECK_OVERLAP` reports an error if any
/// two of its names share a byte. Built-in names cannot be redefined.
/// ```click
/// AnnotationInfo(TRUST 40 1, CHECK_OVERLAP TRUST PAINT DST_IP);
/// InfiniteSource(LIMIT 2, STOP true) -> Paint(3, ANNO TRUST)
///     -> p :: CheckPaint(3, ANNO TRUST) -> c :: Counter -> Discard;
/// ```
/// ```expect
/// c.count = 2
/// ```
#[derive(Args)]
#[element(
    name = "AnnotationInfo",
    group = "information",
    ports = "0/0",
    phase = "names",
    shards = "independent",
    see = "SetAnnoByte, Paint"
)]
pub struct AnnotationInfoArgs {
    /// Names, each with its offset and size.
    #[arg(rest)]
    names: Vec<Raw>,
}

pub struct AnnotationInfo {
    /// Sets of names that must not overlap.
    disjoint: Vec<Vec<String>>,
}

/// Parses the words after a name; `None` if they are not an annotation.
fn parse_annotation(words: &[String], setup: &Setup) -> Option<AnnotationField> {
    let (offset, size) = match words {
        [offset] => (offset, None),
        [offset, size] => (offset, Some(u8::from_argument(size, setup).ok()?)),
        _ => return None,
    };
    let named = AnnotationField::from_argument(offset, setup).ok()?;
    let size = size.map_or(0, usize::from);
    let agrees = size == 0 || named.size == 0 || named.size == size;
    (agrees && named.offset + size <= annotation::SIZE)
        .then_some(AnnotationField { offset: named.offset, size })
}

/// Whether a name is built in.
fn is_known(name: &str) -> bool {
    annotation::FIELDS.iter().any(|field| field.name == name)
}

impl Element for AnnotationInfo {
    type Args = AnnotationInfoArgs;

    fn new(args: AnnotationInfoArgs, setup: &mut Setup) -> Result<AnnotationInfo, SetupError> {
        let mut problems = Problems::default();
        let mut disjoint = Vec::new();
        for Raw(argument) in &args.names {
            let mut words = text::words(argument);
            let name = match words.first() {
                Some(name) if !name.starts_with('#') => name.clone(),
                _ => continue,
            };
            words.remove(0);
            if name == "CHECK_OVERLAP" {
                disjoint.push(words);
            } else if !text::is_identifier(&name)
                || u32::from_argument(&name, setup).is_ok()
                || is_known(&name)
            {
                problems.add(format!("bad NAME ‘{name}’"));
            } else if let Some(field) = parse_annotation(&words, setup) {
                let bytes = [field.offset as u8, field.size as u8];
                setup.names().define(NameKind::Annotation, setup.scope(), &name, &bytes);
            } else {
                problems.add(format!("bad entry for ‘{name}’"));
            }
        }
        problems.into_result().map(|()| AnnotationInfo { disjoint })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        let mut problems = Problems::default();
        for names in &self.disjoint {
            let mut known: Vec<(&str, core::ops::Range<usize>)> = Vec::new();
            for name in names {
                let Ok(field) = cx.argument::<AnnotationField>(name) else {
                    problems.add(format!("bad ANNO ‘{name}’"));
                    continue;
                };
                let bytes = field.offset..field.offset + field.size.max(1);
                for (other, others) in &known {
                    if bytes.start < others.end && others.start < bytes.end {
                        problems.add(format!("annotations ‘{other}’ and ‘{name}’ conflict"));
                    }
                }
                known.push((name, bytes));
            }
        }
        problems.into_result()
    }
}

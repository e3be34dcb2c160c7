//! The contents of `#[element(...)]` and `#[arg(...)]`.

use syn::{Attribute, LitStr, Result};

/// The variants of `Fate`, in their order.
const VARIANTS: [&str; 10] = [
    "Received",
    "Made",
    "Copied",
    "Delivered",
    "Discarded",
    "Consumed",
    "Merged",
    "Lost",
    "Waiting",
    "Changed",
];

/// The contents of `#[element(...)]`.
pub(crate) struct ElementAttributes {
    pub(crate) name: String,
    pub(crate) aliases: Vec<String>,
    /// The name of a static: the class's names in configurations for other programs.
    pub(crate) other_names: Option<String>,
    pub(crate) group: String,
    pub(crate) ports: String,
    pub(crate) processing: String,
    pub(crate) flow: String,
    pub(crate) order_insensitive: bool,
    pub(crate) mixes_inputs: bool,
    pub(crate) storage: bool,
    pub(crate) task: bool,
    pub(crate) upkeep: bool,
    pub(crate) pulls_again: bool,
    pub(crate) keeps_place: bool,
    pub(crate) puts_back: bool,
    pub(crate) logs: bool,
    pub(crate) notifies: String,
    pub(crate) phase: String,
    pub(crate) reads: Vec<String>,
    pub(crate) drops: Vec<String>,
    pub(crate) fates: Vec<String>,
    pub(crate) see: Vec<String>,
    pub(crate) shards: String,
    pub(crate) flows: String,
    pub(crate) sums: Vec<String>,
    pub(crate) lists: Vec<String>,
    pub(crate) obsolete: String,
}

/// The contents of `#[arg(...)]`.
#[derive(Default)]
pub(crate) struct ArgAttributes {
    pub(crate) keyword: Option<String>,
    pub(crate) position: bool,
    pub(crate) default: Option<String>,
    pub(crate) rest: bool,
    pub(crate) repeated: bool,
    pub(crate) flatten: bool,
    pub(crate) input_file: bool,
    pub(crate) deprecated: bool,
}

impl ElementAttributes {
    pub(crate) fn parse(attributes: &[Attribute]) -> Result<ElementAttributes> {
        let mut parsed = ElementAttributes {
            name: String::new(),
            aliases: Vec::new(),
            other_names: None,
            group: String::new(),
            ports: "1/1".into(),
            processing: "a/a".into(),
            flow: "x/x".into(),
            order_insensitive: false,
            mixes_inputs: false,
            storage: false,
            task: false,
            upkeep: false,
            pulls_again: false,
            keeps_place: false,
            puts_back: false,
            logs: false,
            notifies: "Nothing".into(),
            phase: "Normal".into(),
            reads: Vec::new(),
            drops: Vec::new(),
            fates: Vec::new(),
            see: Vec::new(),
            shards: "Never".into(),
            flows: "Nothing".into(),
            sums: Vec::new(),
            lists: Vec::new(),
            obsolete: String::new(),
        };
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("element")) {
            attribute.parse_nested_meta(|meta| {
                let key = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
                match key.as_str() {
                    "order_insensitive" => parsed.order_insensitive = true,
                    "mixes_inputs" => parsed.mixes_inputs = true,
                    "storage" => parsed.storage = true,
                    "task" => parsed.task = true,
                    "upkeep" => parsed.upkeep = true,
                    "pulls_again" => parsed.pulls_again = true,
                    "keeps_place" => parsed.keeps_place = true,
                    "puts_back" => parsed.puts_back = true,
                    "logs" => parsed.logs = true,
                    "name" => parsed.name = text(&meta)?,
                    "aliases" => parsed.aliases = list(&meta)?,
                    "other_names" => parsed.other_names = Some(text(&meta)?),
                    "group" => parsed.group = text(&meta)?,
                    "ports" => parsed.ports = text(&meta)?,
                    "processing" => parsed.processing = text(&meta)?,
                    "flow" => parsed.flow = text(&meta)?,
                    "reads" => parsed.reads = list(&meta)?,
                    "drops" => parsed.drops = list(&meta)?,
                    "fates" => {
                        parsed.fates = list(&meta)?;
                        if let Some(unknown) = parsed.fates.iter().find(|fate| !is_fate(fate)) {
                            return Err(meta.error(format!("unknown fate `{unknown}`")));
                        }
                    }
                    "see" => parsed.see = list(&meta)?,
                    "obsolete" => parsed.obsolete = text(&meta)?,
                    "sums" => parsed.sums = list(&meta)?,
                    "lists" => parsed.lists = list(&meta)?,
                    "shards" => {
                        let value = text(&meta)?;
                        parsed.shards = match value.as_str() {
                            "independent" => "Independent".into(),
                            "sum" => "Sum".into(),
                            "divide" => "Divide".into(),
                            "first" => "First".into(),
                            _ => {
                                return Err(
                                    meta.error("expected \"independent\", \"sum\", \"divide\" or \"first\"")
                                );
                            }
                        };
                    }
                    "flows" => {
                        let value = text(&meta)?;
                        parsed.flows = match value.as_str() {
                            "keeps" => "Keeps".into(),
                            "fragments" => "Fragments".into(),
                            "changes" => "Changes".into(),
                            _ => return Err(meta.error("expected \"keeps\", \"fragments\" or \"changes\"")),
                        };
                    }
                    "notifies" => {
                        let value = text(&meta)?;
                        parsed.notifies = match value.as_str() {
                            "empty" => "Empty".into(),
                            "full" => "Full".into(),
                            "both" => "EmptyAndFull".into(),
                            _ => return Err(meta.error("expected \"empty\", \"full\" or \"both\"")),
                        };
                    }
                    "phase" => {
                        let value = text(&meta)?;
                        parsed.phase = match value.as_str() {
                            "names" => "Names".into(),
                            "information" => "Information".into(),
                            "receiver" => "Receiver".into(),
                            "sender" => "Sender".into(),
                            "early" => "Early".into(),
                            "late" => "Late".into(),
                            _ => return Err(meta.error("expected a phase, such as \"names\" or \"late\"")),
                        };
                    }
                    _ => return Err(meta.error("unknown key")),
                }
                Ok(())
            })?;
        }
        Ok(parsed)
    }
}

impl ElementAttributes {
    /// The variants of `Fate` for the declared fates and drops, in their order.
    pub(crate) fn fates(&self) -> Vec<&'static str> {
        let declares = |name: &str| match name {
            "Lost" => !self.drops.is_empty(),
            _ => self.fates.iter().any(|fate| fate.eq_ignore_ascii_case(name)),
        };
        VARIANTS.into_iter().filter(|name| declares(name)).collect()
    }
}

impl ArgAttributes {
    pub(crate) fn parse(attributes: &[Attribute]) -> Result<ArgAttributes> {
        let mut parsed = ArgAttributes::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("arg")) {
            attribute.parse_nested_meta(|meta| {
                let key = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
                match key.as_str() {
                    "keyword" => parsed.keyword = Some(text(&meta)?),
                    "position" => parsed.position = true,
                    "default" => parsed.default = Some(text(&meta)?),
                    "rest" => parsed.rest = true,
                    "repeated" => parsed.repeated = true,
                    "flatten" => parsed.flatten = true,
                    "input_file" => parsed.input_file = true,
                    "deprecated" => parsed.deprecated = true,
                    _ => return Err(meta.error("unknown key")),
                }
                Ok(())
            })?;
        }
        Ok(parsed)
    }
}

/// Whether a class may declare this fate. It does not declare `lost`: `drops` says it, with the reasons.
fn is_fate(text: &str) -> bool {
    text != "lost" && VARIANTS.iter().any(|name| name.to_lowercase() == text)
}

fn text(meta: &syn::meta::ParseNestedMeta) -> Result<String> {
    Ok(meta.value()?.parse::<LitStr>()?.value())
}

fn list(meta: &syn::meta::ParseNestedMeta) -> Result<Vec<String>> {
    Ok(text(meta)?.split(',').map(|name| name.trim().to_string()).collect())
}

//! The OpenAPI document, generated from the table of operations.
//!
//! The program contains the generated document, not what generates it: the code of all schemas is larger.

use std::collections::BTreeMap;
use std::io::{self, Read};

use flate2::read::GzDecoder;
use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::operation::{TYPED, Typed};
use crate::{ErrorCode, ErrorReply};

/// Errors that any operation can return.
const COMMON_ERRORS: [ErrorCode; 4] =
    [ErrorCode::Invalid, ErrorCode::Forbidden, ErrorCode::Denied, ErrorCode::Internal];

/// The document as docs/openapi.json has it, compressed.
static COMPRESSED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/openapi.json.gz"));

/// The text of the document that was generated before this program was built.
///
/// # Errors
///
/// The compressed text is damaged.
pub fn text() -> io::Result<String> {
    let mut text = String::new();
    GzDecoder::new(COMPRESSED).read_to_string(&mut text)?;
    Ok(text)
}

/// Generates the document: OpenAPI 3.1.
pub fn document() -> Value {
    let mut generator = SchemaSettings::draft2020_12()
        .with(|settings| settings.definitions_path = "/components/schemas".into())
        .into_generator();
    let mut paths: Map<String, Value> = Map::new();
    for entry in TYPED {
        let operation = operation(*entry, &mut generator);
        let path = paths.entry(entry.path()).or_insert_with(|| json!({}));
        path[entry.method().name().to_ascii_lowercase()] = operation;
    }
    let responses = failures(&mut generator);
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Clickbox",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The interface of the Clickbox daemon: boxes, switches, stacks. Over a Unix socket, or over \
                            TCP with TLS and a bearer token.",
            "license": { "name": "MIT OR Apache-2.0" }
        },
        "paths": paths,
        "components": {
            "responses": responses,
            "schemas": generator.take_definitions(true),
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } }
        },
        "security": [{}, { "token": [] }]
    });
    join_lines(&mut document);
    document
}

/// Joins the lines of each paragraph in the descriptions, because the line breaks of comments have no meaning in the
/// document.
fn join_lines(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(join_lines),
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(text) if name == "description" => {
                        let lines = |paragraph: &str| paragraph.replace('\n', " ");
                        *text = text.split("\n\n").map(lines).collect::<Vec<_>>().join("\n\n");
                    }
                    member => join_lines(member),
                }
            }
        }
        _ => {}
    }
}

fn operation(entry: &dyn Typed, generator: &mut SchemaGenerator) -> Value {
    let mut operation = json!({
        "operationId": entry.name(),
        "summary": entry.summary(),
        "x-required-right": entry.right().name()
    });
    let mut parameters: Vec<Value> = parameters(entry.path())
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }))
        .collect();
    if let Some(query) = entry.query(generator) {
        parameters.extend(query_parameters(&query));
    }
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    if let (Some(media), schema) = entry.request(generator) {
        operation["requestBody"] = json!({ "required": true, "content": content(media, schema) });
    }
    let (media, schema) = entry.reply(generator);
    let mut responses = Map::new();
    match media {
        Some(media) => responses
            .insert("200".into(), json!({ "description": "Done.", "content": content(media, schema) })),
        None => responses.insert("204".into(), json!({ "description": "Done." })),
    };
    for code in COMMON_ERRORS.iter().chain(entry.errors()) {
        let status = code.status().to_string();
        let reference = format!("#/components/responses/{status}");
        responses.insert(status, json!({ "$ref": reference }));
    }
    operation["responses"] = responses.into();
    operation
}

/// The parameters of a path.
pub(crate) fn parameters(path: &str) -> impl Iterator<Item = &str> {
    path.split('{').skip(1).filter_map(|rest| rest.split('}').next())
}

/// A reply for each error status, which lists its error codes.
fn failures(generator: &mut SchemaGenerator) -> Value {
    let mut names: BTreeMap<u16, Vec<Value>> = BTreeMap::new();
    for code in ErrorCode::ALL {
        names.entry(code.status()).or_default().push(serde_json::to_value(code).unwrap_or_default());
    }
    let reply = |(status, names): (&u16, &Vec<Value>)| {
        let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
        let schema = generator.subschema_for::<ErrorReply>();
        let reply = json!({
            "description": format!("Failed: {}.", names.join(" or ")),
            "content": content("application/json", Some(schema))
        });
        (status.to_string(), reply)
    };
    names.iter().map(reply).collect::<Map<String, Value>>().into()
}

/// The body of a request or reply. A schema that accepts any value is written as `{}`, which is equivalent to `true`
/// but accepted by more client generators.
fn content(media: &str, schema: Option<Schema>) -> Value {
    match schema.map(Schema::to_value) {
        Some(Value::Bool(true)) => json!({ media: { "schema": {} } }),
        Some(schema) => json!({ media: { "schema": schema } }),
        None => json!({ media: {} }),
    }
}

/// The properties of a query's schema as parameters.
fn query_parameters(query: &Schema) -> Vec<Value> {
    let required = |name: &str| {
        let names = query.get("required").and_then(Value::as_array);
        names.is_some_and(|names| names.iter().any(|known| known == name))
    };
    let properties = query.get("properties").and_then(Value::as_object);
    let parameter = |(name, schema): (&String, &Value)| {
        let mut schema = schema.clone();
        let description = schema.as_object_mut().and_then(|schema| schema.remove("description"));
        json!({
            "name": name,
            "in": "query",
            "required": required(name),
            "description": description.unwrap_or_default(),
            "schema": schema
        })
    };
    properties.into_iter().flatten().map(parameter).collect()
}

//! The JSON schema of scenario files, for editors.

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform as _};
use schemars::{JsonSchema, Schema};
use serde_json::Value;

use super::raw::RawScenario;

/// The JSON schema of scenario files, as kept in `docs/schema/scenario.schema.json`.
pub fn json_schema() -> String {
    schema_of::<RawScenario>("Takt scenario")
}

/// A schema that says what can be written in TOML.
pub(super) fn schema_of<T: JsonSchema>(title: &str) -> String {
    let mut generator = SchemaSettings::draft07().into_generator();
    let mut schema = T::json_schema(&mut generator);
    let definitions = generator.take_definitions(true);
    schema.insert("$schema".to_owned(), "http://json-schema.org/draft-07/schema#".into());
    schema.insert("title".to_owned(), title.into());
    schema.insert("definitions".to_owned(), Value::Object(definitions));
    RecursiveTransform(without_null).transform(&mut schema);
    // Maps with string keys always have a JSON form.
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}

/// TOML has no null: an optional key is left out instead.
fn without_null(schema: &mut Schema) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = &types[..] {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    let Some(Value::Array(choices)) = schema.get_mut("anyOf") else {
        return;
    };
    choices.retain(|choice| choice.get("type").is_none_or(|name| name != "null"));
    if let [only] = &choices[..] {
        let only = only.clone();
        schema.remove("anyOf");
        if let (Value::Object(only), Some(object)) = (only, schema.as_object_mut()) {
            object.extend(only);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// Rewrites the file where `UPDATE_EXPECT` is set, like the other expectations.
    #[test]
    fn the_committed_schema_is_fresh() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema/scenario.schema.json");
        expect_test::expect_file![path].assert_eq(&super::json_schema());
    }
}

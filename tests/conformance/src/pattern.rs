//! What an answer must have: a pattern of JSON, matched in part, with variables.
//!
//! Invariant: `"$name"` binds a variable at its first match and compares with it later. Names of an
//! object that a pattern does not have are free; the elements of a list are not.

use std::collections::BTreeMap;

use serde_json::Value;

/// The values of the variables of a case.
#[derive(Clone, Debug, Default)]
pub(crate) struct Variables(BTreeMap<String, Value>);

impl Variables {
    /// Binds a variable.
    pub(crate) fn bind(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }

    /// Returns a value with the variables in their places.
    pub(crate) fn filled(&self, value: &Value) -> Result<Value, String> {
        Ok(match value {
            Value::String(text) => match variable(text) {
                Some(name) => {
                    let bound = self.0.get(name);
                    bound.cloned().ok_or_else(|| format!("${name} is bound by no earlier step"))?
                }
                None => self.inside(text)?,
            },
            Value::Array(items) => {
                Value::Array(items.iter().map(|item| self.filled(item)).collect::<Result<_, _>>()?)
            }
            Value::Object(fields) => Value::Object(
                fields
                    .iter()
                    .map(|(name, value)| Ok((name.clone(), self.filled(value)?)))
                    .collect::<Result<_, String>>()?,
            ),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        })
    }

    /// Fills in `${name}` in a text, and `${letters * 300}`: a text of so many letters.
    fn inside(&self, text: &str) -> Result<Value, String> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let (name, after) = after.split_once('}').ok_or("`${` without `}`")?;
            filled.push_str(before);
            if let Some((letters, count)) = name.split_once(" * ") {
                let count = count.parse().map_err(|_| format!("{count} is not a number"))?;
                filled.push_str(&letters.repeat(count));
            } else {
                match self.0.get(name) {
                    Some(Value::String(value)) => filled.push_str(value),
                    Some(value) => filled.push_str(&value.to_string()),
                    None => return Err(format!("${{{name}}} is bound by no earlier step")),
                }
            }
            rest = after;
        }
        filled.push_str(rest);
        Ok(Value::String(filled))
    }

    /// Matches a value with a pattern; says where it does not.
    pub(crate) fn matches(
        &mut self,
        pattern: &Value,
        value: &Value,
        unordered: bool,
    ) -> Result<(), String> {
        let mut after = self.clone();
        after.at("", pattern, value, unordered)?;
        *self = after;
        Ok(())
    }

    fn at(
        &mut self,
        place: &str,
        pattern: &Value,
        value: &Value,
        unordered: bool,
    ) -> Result<(), String> {
        match pattern {
            Value::String(text) => self.text(place, text, value),
            Value::Object(fields) => {
                for (name, wanted) in fields {
                    let place = format!("{place}.{name}");
                    self.at(&place, wanted, value.get(name).unwrap_or(&Value::Null), unordered)?;
                }
                Ok(())
            }
            Value::Array(wanted) => {
                let found = value.as_array().map(Vec::as_slice).unwrap_or_default();
                if wanted.len() != found.len() {
                    let (wanted, count) = (wanted.len(), found.len());
                    return Err(format!("{place} has {count} elements, not {wanted}: {value}"));
                }
                if unordered {
                    return self.any_order(place, wanted, found);
                }
                for (index, (wanted, found)) in wanted.iter().zip(found).enumerate() {
                    self.at(&format!("{place}[{index}]"), wanted, found, false)?;
                }
                Ok(())
            }
            // A field with its default value is not in the JSON of a message.
            Value::Null => {
                is_unset(value).then_some(()).ok_or_else(|| fault(place, pattern, value))
            }
            Value::Bool(false) if is_unset(value) => Ok(()),
            Value::Number(number) if number.as_f64() == Some(0.0) && is_unset(value) => Ok(()),
            Value::Number(number) => {
                // 64-bit numbers are texts in the JSON of protobuf.
                let same = match value {
                    Value::String(text) => text.parse() == Ok(number.as_f64().unwrap_or(f64::NAN)),
                    Value::Null
                    | Value::Bool(_)
                    | Value::Number(_)
                    | Value::Array(_)
                    | Value::Object(_) => value.as_f64() == number.as_f64(),
                };
                same.then_some(()).ok_or_else(|| fault(place, pattern, value))
            }
            Value::Bool(_) => {
                (pattern == value).then_some(()).ok_or_else(|| fault(place, pattern, value))
            }
        }
    }

    fn text(&mut self, place: &str, pattern: &str, value: &Value) -> Result<(), String> {
        let wrong = || fault(place, &Value::from(pattern), value);
        match pattern {
            "$any" => Ok(()),
            "$set" => (!is_unset(value)).then_some(()).ok_or_else(wrong),
            "" => is_unset(value).then_some(()).ok_or_else(wrong),
            _ => match variable(pattern) {
                Some(name) => match self.0.get(name) {
                    Some(bound) => (bound == value).then_some(()).ok_or_else(|| {
                        format!("{place} is {value}, and ${name} was {bound} before")
                    }),
                    None if is_unset(value) => Err(wrong()),
                    None => {
                        self.bind(name, value.clone());
                        Ok(())
                    }
                },
                None => {
                    let filled = self.inside(pattern)?;
                    (filled == *value).then_some(()).ok_or_else(wrong)
                }
            },
        }
    }

    fn any_order(&mut self, place: &str, wanted: &[Value], found: &[Value]) -> Result<(), String> {
        let mut left: Vec<&Value> = found.iter().collect();
        for wanted in wanted {
            let fits =
                left.iter().position(|found| self.clone().at(place, wanted, found, true).is_ok());
            let index =
                fits.ok_or_else(|| format!("{place}: no element matches {wanted}: {left:?}"))?;
            self.at(place, wanted, left.remove(index), true)?;
        }
        Ok(())
    }
}

/// Returns the name of the variable that a text is.
fn variable(text: &str) -> Option<&str> {
    text.strip_prefix('$').filter(|name| !name.starts_with('{'))
}

/// Returns whether a value is one that the JSON of a message leaves out.
fn is_unset(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty() || text == "0",
        Value::Array(items) => items.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Bool(true) | Value::Object(_) => false,
    }
}

fn fault(place: &str, wanted: &Value, found: &Value) -> String {
    let place = if place.is_empty() { "it" } else { place };
    format!("{place} is {found}, not {wanted}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn patterns_match_in_part_and_bind() {
        let mut variables = Variables::default();
        let answer = json!({"messageId": "12", "list": [{"a": 1}, {"a": 2}], "more": true});
        for (pattern, unordered, right) in [
            (json!({"messageId": "$id"}), false, true),
            (json!({"messageId": 12}), false, true),
            (json!({"messageId": "13"}), false, false),
            (json!({"messageId": "$id", "more": true}), false, true),
            (json!({"list": [{"a": 2}, {"a": 1}]}), false, false),
            (json!({"list": [{"a": 2}, {"a": 1}]}), true, true),
            (json!({"list": [{"a": 1}]}), false, false),
            (json!({"list": [{"a": "$one"}, {"a": "$one"}]}), false, false),
            (json!({"absent": null, "other": false, "third": "", "n": 0}), false, true),
            (json!({"more": null}), false, false),
            (json!({"absent": "$unset"}), false, false),
            (json!({"more": "$set"}), false, true),
        ] {
            let matched = variables.matches(&pattern, &answer, unordered);
            assert_eq!(matched.is_ok(), right, "{pattern}: {matched:?}");
        }
        let filled = variables.filled(&json!({"to": ["$id", "n${id}", "${x * 3}"]}));
        assert_eq!(filled, Ok(json!({"to": ["12", "n12", "xxx"]})));
        assert!(variables.filled(&json!("$one")).is_err(), "a pattern that failed binds nothing");
    }
}

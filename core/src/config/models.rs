//! `model` and `available_models` of an agent.
//!
//! Invariant: a list of models contains the agent's own model.

use std::ops::Range;

use super::section::{Section, list};
use crate::agent::is_model_name;
use crate::limits::MODEL_CHARS_MAX;
use crate::name::nearest;

/// Maximum models that an agent may choose from; each answer about the agent contains the list.
const AVAILABLE_MODELS_MAX: usize = 32;

/// Reads the model that the agent runs on.
pub(super) fn chosen(section: &mut Section<'_, '_, '_>) -> Option<String> {
    let (text, span) = section.text("model")?;
    sound(section, "model", text, span)
}

/// Reads the models that the agent may be switched to; empty: any.
pub(super) fn available(section: &mut Section<'_, '_, '_>) -> Vec<String> {
    let key = "available_models";
    let Some(span) = section.value(key).map(toml::Spanned::span) else { return Vec::new() };
    let Some(texts) = section.texts(key) else { return Vec::new() };
    if texts.is_empty() {
        // Readers of the list take an empty one as "any"; an author of [] most likely means the
        // opposite.
        let sentence = "`available_models` is empty; leave it out to allow every model, or name those that are allowed";
        section.object(span, key, sentence.to_owned(), None);
        return Vec::new();
    }
    if texts.len() > AVAILABLE_MODELS_MAX {
        let sentence = format!(
            "`available_models` has {} models, more than {AVAILABLE_MODELS_MAX}",
            texts.len()
        );
        section.object(span, key, sentence, None);
        return Vec::new();
    }
    let mut models: Vec<String> = Vec::with_capacity(texts.len());
    let mut all_sound = true;
    for (text, span) in texts {
        match sound(section, key, text, span) {
            Some(model) if !models.contains(&model) => models.push(model),
            Some(_) => {}
            None => all_sound = false,
        }
    }
    if all_sound {
        among(section, &models);
    }
    models
}

fn among(section: &mut Section<'_, '_, '_>, models: &[String]) {
    let Some(value) = section.value("model") else { return };
    let Some(model) = value.get_ref().as_str().filter(|model| is_model_name(model)) else { return };
    if models.iter().any(|available| available == model) {
        return;
    }
    let names = || models.iter().map(String::as_str);
    let near = nearest(model, names()).first().copied();
    let mut sentence = format!("the model `{model}` is not among `available_models`");
    if near.is_none() {
        sentence.push_str(&format!(", which are {}", list(names())));
    }
    section.object(value.span(), "model", sentence, near);
}

fn sound(
    section: &mut Section<'_, '_, '_>,
    key: &'static str,
    text: String,
    span: Range<usize>,
) -> Option<String> {
    if is_model_name(&text) {
        return Some(text);
    }
    let whose =
        if key == "model" { "`model` has at most" } else { "each of `available_models` has 1 to" };
    let sentence =
        format!("{whose} {MODEL_CHARS_MAX} printable characters and does not begin with `-`");
    section.object(span, key, sentence, None);
    None
}

//! A model's `config.json`, as the Transformers library reads it [Wolf20], in the words of a sweep: each family has its own words.

use std::path::Path;

use super::families::{ENCODER, Experts, FAMILIES, Family, KvHeads, NO_ATTENTION, REFUSED, Shared, SideBySide, Words};
use super::files::mapping;
use crate::astra_sim::{Form, open};
use crate::input::diagnostic::{nearest, quoted};
use crate::input::tree::{Node, Value};
use crate::input::{Diagnostic, Place, Remarks};
use crate::units::{index, real, whole};
use crate::workload::Mlp;

/// What the file is, in a sentence.
const WHAT: &str = "the model's configuration";
/// The key that says which family a model is of.
const TYPE: &str = "model_type";
/// The key of the model that reads text, where others stand beside it.
const TEXT: &str = "text_config";
/// The largest number of a shape.
const MOST: f64 = 1e9;
/// Attention within blocks of so many tokens.
const CHUNKED: Words = &["attention_chunk_size"];
/// What each layer is, by a word.
const LAYER_TYPES: Words = &["layer_types"];

/// Reads a model's shape; none if something is wrong, which is remarked. Keys that are written beside need not stand in the file.
pub fn read(path: &Path, beside: &[&str], remarks: &mut Remarks) -> Option<Node> {
    let before = remarks.errors();
    let root = open(path, WHAT, Form::Strict, remarks)?;
    let text = root.get(TEXT).map(|entry| &entry.node).filter(|node| matches!(node.value, Value::Map(_)));
    if let Some(entry) = root.get(TEXT).filter(|_| text.is_some()) {
        let caution = Diagnostic::caution(format!("`{TEXT}` alone counts: what stands beside it reads no text"));
        remarks.say(caution.at(entry.place).help("its parameters and its arithmetic are not in the answer"));
    }
    let mut shape = Shape { node: text.unwrap_or(&root), beside, remarks, lines: Vec::new() };
    let family = shape.family(&root)?;
    shape.refuse(&family);
    shape.lines(&family);
    shape.notes();
    let lines = shape.lines;
    let node = Node { value: mapping(lines), place: Place::default() };
    (remarks.errors() == before).then_some(node)
}

/// A shape that is being read.
struct Shape<'a> {
    node: &'a Node,
    beside: &'a [&'a str],
    remarks: &'a mut Remarks,
    lines: Vec<(String, Value)>,
}

impl Shape<'_> {
    fn error(&mut self, place: Place, message: String, help: impl Into<String>) {
        self.remarks.say(Diagnostic::error(message).at(place).help(help));
    }

    fn caution(&mut self, place: Place, message: String, help: &str) {
        self.remarks.say(Diagnostic::caution(message).at(place).help(help));
    }

    /// The value of the first of some keys that is written, and the key; what is `null` is not.
    fn get(&self, words: &[&'static str]) -> Option<(&'static str, Node)> {
        let written = |word: &&str| self.node.get(word).filter(|entry| entry.node.value != Value::Null);
        words.iter().find_map(|word| Some((*word, written(word)?.node.clone())))
    }

    /// The family of the model.
    fn family(&mut self, root: &Node) -> Option<Family> {
        let own = self.get(&[TYPE]).or_else(|| Some((TYPE, root.get(TYPE)?.node.clone())));
        let Some((_, node)) = own else {
            let help = "it says what the other keys mean: `\"model_type\": \"llama\"`";
            self.error(self.node.place, format!("{WHAT} has no `{TYPE}`"), help);
            return None;
        };
        let Value::Text(name) = &node.value else {
            self.wrong_kind(TYPE, &node, "the name of a family");
            return None;
        };
        let is_named = |types: Words| types.contains(&name.as_str());
        if let Some(refused) = REFUSED.iter().find(|refused| is_named(refused.0)) {
            self.cannot(node.place, name, refused.1);
            return None;
        }
        let found = FAMILIES.iter().find(|family| is_named(family.types)).copied();
        if found.is_none() {
            let known: Vec<&str> = FAMILIES.iter().flat_map(|family| family.types).copied().collect();
            let near = nearest(name, known.iter().copied()).map(|near| format!("did you mean `{near}`?"));
            let help = near.unwrap_or_else(|| format!("one of {};", quoted(&known)));
            let help = format!("{help} or write its shape in the sweep: `layers`, `hidden`, `heads`, ...");
            self.error(node.place, format!("`{TYPE}` knows no `{name}`"), help);
        }
        found
    }

    /// Says that a sweep has no word for something.
    fn cannot(&mut self, place: Place, key: &str, what: &str) {
        let help = "a model is a decoder whose layers are attention with key and value heads, and an MLP or experts";
        self.error(place, format!("`{key}`: a sweep has no word for {what}"), help);
    }

    fn wrong_kind(&mut self, key: &str, node: &Node, wanted: &str) {
        let written = node.scalar().map(|text| format!(" `{text}`")).unwrap_or_default();
        self.error(node.place, format!("`{key}` is {}{written}, not {wanted}", node.kind()), format!("write {wanted}"));
    }

    /// Refuses what a sweep has no word for.
    fn refuse(&mut self, family: &Family) {
        if let Some((key, node)) = self.get(&["kv_lora_rank"]).filter(|_| !family.is_latent) {
            self.cannot(node.place, key, "latent attention in this family");
        }
        if let Some((key, node)) = self.get(&["moe_layer_freq"])
            && node.value != Value::Number(1.0)
        {
            self.cannot(node.place, key, "a pattern of its own of layers with experts");
        }
        if let Some((key, node)) = self.get(&["is_encoder_decoder"])
            && node.value == Value::Bool(true)
        {
            self.cannot(node.place, key, ENCODER);
        }
        if let Some((key, node)) = self.get(LAYER_TYPES)
            && let Value::List(items) = &node.value
        {
            let is_attention = |item: &&Node| item.scalar().is_some_and(|word| word.ends_with("_attention"));
            let is_linear = |item: &&Node| item.scalar().is_some_and(|word| word.starts_with("linear"));
            if let Some(item) = items.iter().find(|item| !is_attention(item) || is_linear(item)) {
                self.cannot(item.place, key, NO_ATTENTION);
            }
        }
        let embedding = self.get(&["word_embed_proj_dim"]);
        if let (Some((key, node)), Some((_, hidden))) = (embedding, self.get(family.hidden))
            && node.value != hidden.value
        {
            self.cannot(node.place, key, "an embedding of another width than the model");
        }
    }

    /// A whole number that a value is.
    fn whole(&mut self, key: &str, node: &Node, least: f64) -> Option<f64> {
        match node.value {
            Value::Number(number) if number.fract() == 0.0 && (least..=MOST).contains(&number) => Some(number),
            Value::Number(number) => {
                let message = format!("`{key}` is {number}");
                self.error(node.place, message, format!("write a whole number from {least} to {MOST}"));
                None
            }
            _ => {
                self.wrong_kind(key, node, "a whole number");
                None
            }
        }
    }

    /// A whole number of a key; none if it is not written, or wrong.
    fn maybe(&mut self, words: &[&'static str], least: f64) -> Option<f64> {
        let (key, node) = self.get(words)?;
        self.whole(key, &node, least)
    }

    /// A whole number that must be written, here or beside.
    fn count(&mut self, ours: &str, words: &[&'static str], least: f64) -> Option<f64> {
        if self.get(words).is_some() {
            return self.maybe(words, least);
        }
        if !self.beside.contains(&ours) {
            let help = format!("write it in the file, or `{ours}` beside it: `model: {{hf: .., {ours}: ..}}`");
            self.error(self.node.place, format!("{WHAT} has no `{}`", words[0]), help);
        }
        None
    }

    /// A switch.
    fn switch(&mut self, key: &'static str, otherwise: bool) -> bool {
        match self.get(&[key]) {
            None => otherwise,
            Some((_, Node { value: Value::Bool(flag), .. })) => flag,
            Some((_, node)) => {
                self.wrong_kind(key, &node, "`true` or `false`");
                otherwise
            }
        }
    }

    fn set(&mut self, ours: &str, value: Option<f64>) {
        self.lines.extend(value.map(|value| (ours.to_owned(), Value::Number(value))));
    }

    fn flag(&mut self, ours: &str, flag: bool) {
        self.lines.push((ours.to_owned(), Value::Bool(flag)));
    }

    /// The lines of the model.
    fn lines(&mut self, family: &Family) {
        let layers = self.count("layers", family.layers, 1.0);
        self.set("layers", layers);
        let hidden = self.count("hidden", family.hidden, 1.0);
        self.set("hidden", hidden);
        let heads = self.count("heads", family.heads, 1.0);
        self.set("heads", heads);
        let kv_heads = self.kv_heads(family.kv_heads);
        self.set("kv_heads", kv_heads);
        let words = family.width;
        let width = if family.has_width { self.count("head_dim", words, 1.0) } else { self.maybe(words, 1.0) };
        self.set("head_dim", width);
        if family.is_latent {
            self.latent();
        }
        self.windows(family, layers);
        let is_parallel = match family.side_by_side {
            SideBySide::Never => false,
            SideBySide::Always => true,
            SideBySide::UnlessFalse(key) => self.switch(key, true),
        };
        self.flag("parallel_block", is_parallel);
        let ffn = match hidden.filter(|_| family.is_four_wide && self.get(family.ffn).is_none()) {
            Some(hidden) => Some(4.0 * hidden),
            None => self.count("ffn", family.ffn, 1.0),
        };
        self.set("ffn", ffn);
        self.lines.push(("mlp".to_owned(), Value::Text(Mlp::NAMES[family.mlp as usize].to_owned())));
        let vocab = self.count("vocab", &["vocab_size"], 1.0);
        self.set("vocab", vocab);
        let tied = self.switch("tie_word_embeddings", family.is_tied);
        self.flag("tied_embeddings", tied);
        self.flag("learned_positions", family.has_positions);
        let dropout = self.dropout(family.dropout);
        self.flag("dropout", dropout);
        if let Some(experts) = &family.experts {
            self.experts(experts, layers);
        }
    }

    /// Key and value heads; none if they are as many as heads.
    fn kv_heads(&mut self, kind: KvHeads) -> Option<f64> {
        let words: Words = &["num_key_value_heads"];
        match kind {
            KvHeads::All => None,
            KvHeads::Maybe => self.maybe(words, 1.0),
            KvHeads::Said if self.node.get(words[0]).is_some() => self.maybe(words, 1.0),
            KvHeads::Said => self.count("kv_heads", words, 1.0),
            KvHeads::Falcon if self.switch("new_decoder_architecture", false) => {
                self.maybe(&["num_kv_heads", "n_head_kv"], 1.0)
            }
            KvHeads::Falcon => self.switch("multi_query", true).then_some(1.0),
        }
    }

    /// The lines of latent attention; queries have a rank unless it is written as `null`.
    fn latent(&mut self) {
        let kv_rank = self.count("kv_rank", &["kv_lora_rank"], 1.0);
        self.set("kv_rank", kv_rank);
        let words: Words = &["q_lora_rank"];
        let is_written = self.node.get(words[0]).is_some();
        let q_rank = if is_written { self.maybe(words, 1.0) } else { self.count("q_rank", words, 1.0) };
        self.set("q_rank", q_rank);
        let rope_dim = self.count("rope_dim", &["qk_rope_head_dim"], 1.0);
        self.set("rope_dim", rope_dim);
        let value_dim = self.maybe(&["v_head_dim"], 1.0);
        self.set("value_dim", value_dim);
    }

    /// The lines of windows.
    fn windows(&mut self, family: &Family, layers: Option<f64>) {
        if !self.switch("use_sliding_window", family.is_windowed) {
            return;
        }
        let Some(window) = self.maybe(&["sliding_window"], 1.0) else { return };
        if let Some(every) = self.full_every(family, layers) {
            self.set("window", Some(window));
            self.set("full_attention_every", Some(every));
        }
    }

    /// Every how many layers one sees all tokens, 0 if none does; none if all do.
    fn full_every(&mut self, family: &Family, layers: Option<f64>) -> Option<f64> {
        if let Some((key, node)) = self.get(LAYER_TYPES) {
            return self.full_layers(key, &node);
        }
        let words: Words = &["max_window_layers"];
        if let Some(leading) = self.maybe(words, 0.0) {
            let is_full = layers.is_some_and(|layers| leading >= layers);
            if leading > 0.0
                && !is_full
                && let Some((key, node)) = self.get(words)
            {
                self.cannot(node.place, key, "leading layers without a window");
            }
            return Some(0.0).filter(|_| leading == 0.0);
        }
        self.maybe(&["sliding_window_pattern", "_sliding_window_pattern"], 1.0).or(Some(family.full_every))
    }

    /// The same of layers that are listed: every so many layers one sees all tokens, wherever the first stands.
    fn full_layers(&mut self, key: &str, node: &Node) -> Option<f64> {
        let Value::List(items) = &node.value else {
            self.wrong_kind(key, node, "a list of words");
            return None;
        };
        let is_full = |item: &Node| item.scalar().is_none_or(|word| word != "sliding_attention");
        let full: Vec<usize> = (0..items.len()).filter(|&layer| is_full(&items[layer])).collect();
        let every = match full[..] {
            [] => return Some(0.0),
            [_] => items.len(),
            [first, second, ..] => second - first,
        };
        if full.len() == items.len() {
            return None;
        }
        if !(full[0] % every..items.len()).step_by(every).eq(full) {
            self.cannot(node.place, key, "a pattern of its own of layers with a window");
        }
        Some(real(every as u64))
    }

    /// Whether anything is dropped in training.
    fn dropout(&mut self, keys: &'static [(&'static str, f64)]) -> bool {
        let mut is_any = false;
        for &(key, otherwise) in keys {
            let share = match self.get(&[key]) {
                None => otherwise,
                Some((_, Node { value: Value::Number(share), .. })) => share,
                Some((_, node)) => {
                    self.wrong_kind(key, &node, "a share between 0 and 1");
                    otherwise
                }
            };
            is_any |= share > 0.0;
        }
        is_any
    }

    /// The lines of the experts.
    fn experts(&mut self, words: &Experts, layers: Option<f64>) {
        let count = self.count("experts", words.count, 1.0);
        self.set("experts", count);
        let topk = self.count("topk", words.topk, 1.0);
        self.set("topk", topk);
        let width = words.width.and_then(|key| self.count("moe_ffn", &[key], 1.0));
        let shared = match words.shared {
            Shared::Number(number) => Some(number),
            Shared::Count(key) => self.count("shared_experts", &[key], 0.0),
            Shared::Width(key) => {
                let all = self.count("shared_experts", &[key], 0.0);
                all.zip(width).map(|(all, width)| all / width)
            }
        };
        if let (Shared::Width(key), Some(shared)) = (words.shared, shared)
            && shared.fract() != 0.0
            && let Some((_, node)) = self.get(&[key])
        {
            let what = "a shared expert that is no multiple of an expert's width";
            self.cannot(node.place, key, what);
        }
        self.set("shared_experts", shared);
        self.set("moe_ffn", width);
        let every = words.every.and_then(|key| self.maybe(&[key], 1.0)).unwrap_or(1.0);
        self.set("moe_every", Some(every));
        let leading = words.leading.and_then(|key| self.maybe(&[key], 0.0));
        let leading = leading.or_else(|| self.dense_layers()).unwrap_or(0.0);
        self.set("dense_layers", Some(leading));
        if let Some(layers) = layers {
            self.moe_layers(index(whole(layers)), index(whole(every)), index(whole(leading)));
        }
    }

    /// Layers that are listed as dense: all in front.
    fn dense_layers(&mut self) -> Option<f64> {
        let (key, node) = self.get(&["mlp_only_layers"])?;
        let Value::List(items) = &node.value else {
            self.wrong_kind(key, &node, "a list of layers");
            return None;
        };
        let mut numbers: Vec<f64> = items.iter().filter_map(|item| self.whole(key, item, 0.0)).collect();
        numbers.sort_by(f64::total_cmp);
        let mut dense = 0.0;
        for number in numbers {
            if number != dense {
                self.cannot(node.place, key, "dense layers that are not the first ones");
                return None;
            }
            dense += 1.0;
        }
        Some(dense)
    }

    /// Layers that are listed as those with experts: as every so many layers one is.
    fn moe_layers(&mut self, layers: usize, every: usize, leading: usize) {
        let Some((key, node)) = self.get(&["moe_layers"]) else { return };
        let Value::List(items) = &node.value else {
            return self.wrong_kind(key, &node, "a list of layers");
        };
        let listed: Vec<f64> = items.iter().filter_map(|item| self.whole(key, item, 0.0)).collect();
        let expected = (leading..layers).filter(|layer| (layer + 1).is_multiple_of(every));
        if !expected.map(|layer| real(layer as u64)).eq(listed) {
            self.cannot(node.place, key, "a pattern of its own of layers with experts");
        }
    }

    /// What counts for nothing here, and changes the answer.
    fn notes(&mut self) {
        let longest = match self.get(&["max_position_embeddings"]) {
            Some((_, Node { value: Value::Number(longest), .. })) => longest,
            _ => f64::INFINITY,
        };
        if let Some((key, node)) = self.get(CHUNKED)
            && matches!(node.value, Value::Number(chunk) if chunk < longest)
        {
            let message = format!("`{key}` counts for nothing: every token attends to all before it");
            self.caution(node.place, message, "longer sequences take longer here than they do there");
        }
        if let Some((key, node)) = self.get(&["num_nextn_predict_layers"])
            && matches!(node.value, Value::Number(number) if number > 0.0)
        {
            let message = format!("`{key}` counts for nothing: layers that predict further tokens are left out");
            self.caution(node.place, message, "their parameters and their arithmetic are not in the answer");
        }
    }
}

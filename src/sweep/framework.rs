//! Frameworks: what a training framework can launch, as conditions on plans by name; a plan that breaks one is not tried.

use super::resolve::Resolver;
use super::rule::{Rule, compile};
use super::scope::Names;
use super::walk::{Line, Walker};
use crate::input::diagnostic::{Diagnostic, Source, nearest};
use crate::input::tree::{Entry, Node, Value};

/// Where a framework stands.
pub const PATH: &str = "plan.framework";
/// Its name there, and in expressions.
pub const NAME: &str = "framework";

/// What one framework can launch.
#[derive(Debug, Clone)]
pub struct Framework {
    /// What it is called; none for a mapping without a name.
    pub name: Option<String>,
    /// Its conditions: each with the name of what it is about.
    pub conditions: Vec<Entry>,
}

impl Walker {
    /// The conditions of a framework.
    pub(super) fn framework(&mut self, label: Option<&str>, lines: &[Line]) {
        let name = label.map(str::to_owned);
        if self.frameworks.iter().any(|known| known.name == name) {
            return;
        }
        let (of_preset, own): (Vec<&Line>, Vec<&Line>) =
            lines.iter().partition(|line| line.2.iter().any(|node| node.place.source == Source::Preset));
        for (key, place, _) in own {
            if let Some(near) = nearest(key, of_preset.iter().map(|line| line.0.as_str())) {
                let whose = label.unwrap_or("the framework");
                let message = format!("`{key}` is a condition beside those of {whose}: it takes the place of none");
                self.cautions.push(Diagnostic::caution(message).at(*place).help(format!("did you mean `{near}`?")));
            }
        }
        let condition =
            |(key, place, nodes): &Line| Some(Entry { key: key.clone(), place: *place, node: nodes.last()?.clone() });
        self.frameworks.push(Framework { name, conditions: lines.iter().filter_map(condition).collect() });
    }
}

impl Resolver<'_> {
    /// The conditions of all frameworks of a sweep, each where its framework is in force.
    pub(super) fn launchable(&self, names: &Names<'_>) -> (Vec<Rule>, Vec<Diagnostic>) {
        let (mut rules, mut wrong) = (Vec::new(), Vec::new());
        for framework in &self.walker.frameworks {
            for condition in &framework.conditions {
                match guarded(framework, condition, names) {
                    Ok(rule) => rules.push(rule),
                    Err(diagnostic) => wrong.push(diagnostic),
                }
            }
        }
        (rules, wrong)
    }
}

/// A condition that holds wherever another framework is in force; its name says whose it is and what it is about.
fn guarded(framework: &Framework, condition: &Entry, names: &Names<'_>) -> Result<Rule, Diagnostic> {
    let alone = compile(condition, names)?;
    if !alone.is_condition() {
        let message = format!("`{NAME}.{}` is no condition", condition.key);
        return Err(Diagnostic::error(message).at(condition.node.place).help("compare something: `zero <= 1`"));
    }
    let Some(name) = &framework.name else { return Ok(Rule { name: format!("{NAME}: {}", alone.name), ..alone }) };
    let quote = if name.contains('\'') { '"' } else { '\'' };
    let text = format!("{NAME} != {quote}{name}{quote} or ({})", alone.text);
    let node = Node { value: Value::Text(text), place: condition.node.place };
    let rule = compile(&Entry { node, ..condition.clone() }, names)?;
    Ok(Rule { name: format!("{name}: {}", alone.name), text: alone.text, ..rule })
}

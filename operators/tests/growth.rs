//! Every gate, the screen and the print of a text take time that is linear in the text.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::tests_outside_test_module,
    reason = "an integration test is a test module"
)]

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use growth::{SHAPES, is_linear, is_linear_in};
use operators::gates::{Contract as ContractGate, Dedup, PersonalData};
use operators::knowledge::Fingerprint;
use operators::profile::{SamplingKey, Sketch};
use operators::screen::{LocalScreener, Screen};
use operators::{GateChain, standard_chain};
use serde_json::{Value, json};
use types::key::NoKeys;
use types::{Batch, Contract, Field, FieldType};

/// A contract of a text and a value, which allows more members.
fn contract() -> Arc<Contract> {
    let fields = vec![
        Field::new("text", FieldType::String),
        Field::new("value", FieldType::Json),
    ];
    Arc::new(Contract::new(fields, true).unwrap())
}

fn batch(record: Value) -> Batch {
    Batch::decode(&contract(), &[record])
}

fn run(chain: &mut GateChain, batch: &Batch) {
    let running = pin!(chain.run(batch.clone()));
    let Poll::Ready(judged) = running.poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("the local chain waits for nothing");
    };
    assert_eq!(judged.rows, 1);
}

/// A name and a record with a text in this place.
type Place = (&'static str, fn(String) -> Value);
/// A name and a chain.
type Step = (&'static str, fn() -> GateChain);

/// Records that hold a text in each place that a text can be in.
const PLACES: [Place; 3] = [
    ("a field", |text| json!({"text": text})),
    ("another member", |text| json!({"more": text})),
    ("a name", |text| json!({text: 1})),
];

#[test]
fn the_gates_are_linear_in_a_text() {
    for (place, record) in PLACES {
        let steps: [Step; 4] = [
            ("the contract", || GateChain::new().gate(ContractGate)),
            ("dedup", || GateChain::new().gate(Dedup::new(Arc::new(NoKeys)))),
            ("personal data", || GateChain::new().gate(PersonalData::new())),
            ("the screen", || {
                GateChain::new().stage(Arc::new(Screen::new(Arc::new(LocalScreener))))
            }),
        ];
        for (name, chain) in steps {
            let reader = format!("{name} in {place}");
            is_linear_in(
                &reader,
                3_000,
                SHAPES,
                |text| batch(record(text)),
                |batch| run(&mut chain(), batch),
            );
        }
    }
}

#[test]
fn the_chain_is_linear_in_many_small_values() {
    let chain = || standard_chain(Arc::new(NoKeys), Some(Arc::new(LocalScreener)));
    let items = |text: String| batch(json!({"value": text.chars().map(|c| c.to_string()).collect::<Vec<_>>()}));
    is_linear_in("the chain in an array", 500, SHAPES, items, |batch| {
        run(&mut chain(), batch);
    });
    let members = |text: String| {
        let members = text
            .chars()
            .enumerate()
            .map(|(at, c)| (format!("{c}{at}"), c.to_string().into()));
        batch(Value::Object(members.collect()))
    };
    is_linear_in("the chain in members", 500, SHAPES, members, |batch| {
        run(&mut chain(), batch);
    });
}

#[test]
fn the_print_of_a_text_is_linear() {
    is_linear("the print", 3_000, |body| {
        Fingerprint::of(body);
    });
}

#[test]
fn a_sketch_is_linear_in_a_text() {
    let sampling = SamplingKey::new([7; 32]);
    let rows = |text: String| batch(json!({"text": text, "value": [text]}));
    is_linear_in("the sketch", 300_000, SHAPES, rows, |batch| {
        let mut sketch = Sketch::new(&contract());
        sketch.add(batch.columns(), batch.keys(), 0, &sampling).unwrap();
    });
}

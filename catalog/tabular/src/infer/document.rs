//! The pass over a JSON document: the places that may hold its records.
//!
//! Invariant: one element is held at a time, up to the most of a record, and the places that are looked at are bounded.

use std::collections::HashMap;
use std::io::{self, Read};

use types::json::push_pointer;

use super::answer::{FileFormat, Question, shown};
use super::decide::Remarks;
use super::finish::FoundFile;
use super::objects::ObjectColumns;
use super::options::InferOptions;
use super::profile::MAX_KEPT_BYTES;
use super::{InferError, LimitedText};
use crate::buffer::{InputBuffer, LineCounter};
use crate::frame::{FrameError, MAX_RECORD_BYTES, ValueScan};
use crate::reading::{Reading, TextFormat};

/// The member that records get with their name, where they are the members of an object.
pub(super) const KEY_NAME: &str = "key";
/// The deepest place of records, in names of its pointer.
const MAX_PLACE_DEPTH: usize = 3;
/// The most places of each kind.
const MAX_PLACES: usize = 64;
/// The largest place is taken if it has so many times the records of the next one.
const CLEAR_SHARE: u64 = 10;
/// The most pointers in a question.
const MAX_NAMED_PLACES: usize = 10;

/// The way in which a place holds records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum PlaceKind {
    /// Elements of an array.
    Array,
    /// Members of an object, by name.
    Members,
    /// Objects that follow each other, or one.
    Document,
}

/// A place that may hold the records.
struct RecordPlace<'a> {
    kind: PlaceKind,
    pointer: String,
    columns: ObjectColumns<'a>,
    /// Elements that are arrays, and other ones that are no objects.
    arrays: u64,
    others: u64,
}

struct DocumentPass<'a, R> {
    input: InputBuffer<R>,
    lines: LineCounter,
    /// Text of the elements that are held, the outermost first in `begins`; `None` for one that is too long.
    held: Vec<u8>,
    begins: Vec<Option<usize>>,
    places: Vec<RecordPlace<'a>>,
    by_pointer: HashMap<(PlaceKind, String), usize>,
    options: &'a InferOptions,
    budget: usize,
}

/// Reads a whole document.
pub(super) fn infer_document<R: Read>(
    text: &mut LimitedText<R>,
    options: &InferOptions,
) -> Result<(FoundFile, Remarks), InferError> {
    let mut pass = DocumentPass {
        input: InputBuffer::new(&mut *text),
        lines: LineCounter::new(),
        held: Vec::new(),
        begins: Vec::new(),
        places: Vec::new(),
        by_pointer: HashMap::new(),
        options,
        budget: MAX_KEPT_BYTES,
    };
    let end = pass.read();
    let DocumentPass { places, .. } = pass;
    let is_cut = text.is_cut();
    let malformed = match end {
        Ok(()) => None,
        Err(FrameError::Json { .. }) if is_cut => None,
        Err(error) => Some(InferError::malformed(error)?),
    };
    let mut remarks = Remarks::default();
    let chosen = choose(places, options, &mut remarks)?;
    let reading = Reading {
        format: TextFormat::Json,
        records: chosen.pointer,
        members: (chosen.kind == PlaceKind::Members)
            .then(|| options.members.clone().unwrap_or_else(|| KEY_NAME.to_owned())),
        ..Reading::default()
    };
    let found = FoundFile {
        format: FileFormat::Json,
        complete: malformed.is_none() && !is_cut,
        malformed,
        text_bytes: text.bytes_read(),
        records: chosen.columns.records + chosen.others + chosen.arrays,
        columns: chosen.columns.finish(&mut remarks),
        reading,
        asked_lines: Vec::new(),
    };
    Ok((found, remarks))
}

impl<R: Read> DocumentPass<'_, R> {
    const fn line(&self) -> u64 {
        self.lines.ended + 1
    }

    fn fail<T>(&self, problem: &str) -> Result<T, FrameError> {
        Err(FrameError::Json {
            line: self.line(),
            problem: problem.to_owned(),
        })
    }

    fn consume(&mut self, bytes: usize) {
        let used = &self.input.rest()[..bytes];
        self.lines.add(used);
        if !self.begins.is_empty() {
            self.held.extend_from_slice(used);
        }
        self.input.consume(bytes);
        while let Some(outer) = self.begins.iter().position(Option::is_some)
            && let Some(begin) = self.begins[outer]
            && self.held.len() - begin > MAX_RECORD_BYTES
        {
            // The outermost element is too long for a record, and the next one begins behind it.
            self.begins[outer] = None;
            let kept = self.begins.iter().flatten().min().copied().unwrap_or(self.held.len());
            self.held.drain(..kept);
            for begin in self.begins.iter_mut().flatten() {
                *begin -= kept;
            }
        }
    }

    fn hold(&mut self) {
        if self.begins.is_empty() {
            self.held.clear();
        }
        self.begins.push(Some(self.held.len()));
    }

    /// Ends the innermost element that is held, and returns where it is.
    fn release(&mut self) -> Option<std::ops::Range<usize>> {
        let begin = self.begins.pop().flatten()?;
        Some(begin..self.held.len())
    }

    fn peek(&mut self) -> io::Result<Option<u8>> {
        loop {
            let rest = self.input.rest();
            let is_text = |byte: &u8| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
            if let Some(place) = rest.iter().position(is_text) {
                let found = rest[place];
                self.consume(place);
                return Ok(Some(found));
            }
            let blanks = rest.len();
            self.consume(blanks);
            if !self.input.fill()? {
                return Ok(None);
            }
        }
    }

    fn take(&mut self, wanted: u8) -> io::Result<bool> {
        let is_it = self.peek()? == Some(wanted);
        if is_it {
            self.consume(1);
        }
        Ok(is_it)
    }

    /// Passes over a value.
    fn pass_value(&mut self) -> Result<(), FrameError> {
        if matches!(self.peek()?, None | Some(b',' | b']' | b'}' | b':')) {
            return self.fail("expected a value");
        }
        let mut scan = ValueScan::default();
        loop {
            let end = scan.scan(self.input.rest());
            let piece = end.unwrap_or_else(|| self.input.rest().len());
            self.consume(piece);
            if end.is_some() {
                return Ok(());
            }
            if !self.input.fill()? {
                return if scan.is_whole_at_end() {
                    Ok(())
                } else {
                    self.fail("the value at the end never ends")
                };
            }
        }
    }

    /// Returns the place of a kind at a pointer; `None` if there are too many.
    fn place(&mut self, kind: PlaceKind, pointer: &str) -> Option<usize> {
        if let Some(known) = self.by_pointer.get(&(kind, pointer.to_owned())) {
            return Some(*known);
        }
        if self.places.iter().filter(|place| place.kind == kind).count() >= MAX_PLACES {
            return None;
        }
        self.places.push(RecordPlace {
            kind,
            pointer: pointer.to_owned(),
            columns: ObjectColumns::new(self.options),
            arrays: 0,
            others: 0,
        });
        let place = self.places.len() - 1;
        self.by_pointer.insert((kind, pointer.to_owned()), place);
        Some(place)
    }

    fn read(&mut self) -> Result<(), FrameError> {
        let mut pointer = String::new();
        while let Some(next) = self.peek()? {
            match next {
                b'{' => {
                    let line = self.line();
                    let place = self.place(PlaceKind::Document, "");
                    self.hold();
                    self.object(&mut pointer, 0)?;
                    self.add(place, line, None);
                }
                b'[' => self.array(&pointer)?,
                _ => return self.fail("expected an object, or an array of objects"),
            }
        }
        Ok(())
    }

    /// Adds the element that ends here as a record of a place.
    fn add(&mut self, place: Option<usize>, line: u64, key: Option<&[u8]>) {
        let element = self.release();
        let Some(place) = place.and_then(|place| self.places.get_mut(place)) else {
            return;
        };
        match element {
            Some(element) => place.columns.add(&self.held[element], key, line, &mut self.budget),
            None => place.others += 1,
        }
    }

    /// Reads an array at a place of records.
    fn array(&mut self, pointer: &str) -> Result<(), FrameError> {
        let place = self.place(PlaceKind::Array, pointer);
        self.consume(1);
        let mut is_first = true;
        while !self.take(b']')? {
            if !is_first && !self.take(b',')? {
                return self.fail("expected `,` or the end of an array");
            }
            is_first = false;
            let next = self.peek()?;
            if next == Some(b'{') && place.is_some() {
                let line = self.line();
                self.hold();
                self.pass_value()?;
                self.add(place, line, None);
                continue;
            }
            self.pass_value()?;
            if let Some(place) = place.and_then(|place| self.places.get_mut(place)) {
                *(if next == Some(b'[') {
                    &mut place.arrays
                } else {
                    &mut place.others
                }) += 1;
            }
        }
        Ok(())
    }

    /// Reads an object at a place of `depth` names.
    fn object(&mut self, pointer: &mut String, depth: usize) -> Result<(), FrameError> {
        let place = if depth < MAX_PLACE_DEPTH {
            self.place(PlaceKind::Members, pointer)
        } else {
            None
        };
        self.consume(1);
        let mut is_first = true;
        while !self.take(b'}')? {
            if !is_first && !self.take(b',')? {
                return self.fail("expected `,` or the end of an object");
            }
            is_first = false;
            if self.peek()? != Some(b'"') {
                return self.fail("expected the name of a member, in quotes");
            }
            self.hold();
            self.pass_value()?;
            let name = self.release().map(|name| self.held[name].to_vec()).unwrap_or_default();
            if !self.take(b':')? {
                return self.fail("expected `:` behind the name of a member");
            }
            let next = self.peek()?;
            if !matches!(next, Some(b'{' | b'[')) || depth >= MAX_PLACE_DEPTH {
                self.pass_value()?;
                self.count_other(place);
                continue;
            }
            let parent = pointer.len();
            push_pointer(pointer, &serde_json::from_slice::<String>(&name).unwrap_or_default());
            if next == Some(b'[') {
                self.array(pointer)?;
                self.count_other(place);
            } else {
                let line = self.line();
                self.hold();
                self.object(pointer, depth + 1)?;
                self.add(place, line, Some(&name));
            }
            pointer.truncate(parent);
        }
        Ok(())
    }

    fn count_other(&mut self, place: Option<usize>) {
        if let Some(place) = place.and_then(|place| self.places.get_mut(place)) {
            place.others += 1;
        }
    }
}

/// Returns the place that holds the records, and asks where it is not clear.
fn choose<'a>(
    mut places: Vec<RecordPlace<'a>>,
    options: &InferOptions,
    remarks: &mut Remarks,
) -> Result<RecordPlace<'a>, InferError> {
    let given = options
        .reading
        .as_ref()
        .filter(|reading| reading.format == TextFormat::Json);
    let pointer = options
        .records
        .as_ref()
        .or_else(|| given.map(|reading| &reading.records));
    let by_name = options.members.is_some() || given.is_some_and(|reading| reading.members.is_some());
    if pointer.is_some() || by_name {
        let pointer = pointer.map_or("", String::as_str);
        let is_it = |place: &RecordPlace<'_>| {
            let is_kind = (place.kind == PlaceKind::Members) == by_name;
            place.pointer == pointer && is_kind && place.columns.records > 0
        };
        return match places.iter().position(is_it) {
            Some(found) => Ok(places.swap_remove(found)),
            None => Err(InferError::flag(
                "--records",
                &format!("the document has no records at `{}`", shown(pointer)),
            )),
        };
    }
    let objects = |place: &RecordPlace<'_>, kind| if place.kind == kind { place.columns.records } else { 0 };
    let documents = places.iter().position(|place| objects(place, PlaceKind::Document) > 0);
    if let Some(found) = documents.filter(|found| places[*found].columns.records > 1) {
        return Ok(places.swap_remove(found));
    }
    let mut arrays: Vec<usize> = (0..places.len())
        .filter(|place| objects(&places[*place], PlaceKind::Array) > 0)
        .collect();
    arrays.sort_by_key(|place| std::cmp::Reverse(places[*place].columns.records));
    if let [first, rest @ ..] = arrays.as_slice() {
        let records = places[*first].columns.records;
        let is_clear = rest
            .first()
            .is_none_or(|next| records >= CLEAR_SHARE * places[*next].columns.records);
        if !is_clear {
            ask_place(arrays.iter().map(|place| &places[*place]), remarks);
        }
        ask_arrays(&places, records, remarks);
        return Ok(places.swap_remove(*first));
    }
    // Members that are all objects with common names are records by their key.
    let keyed = (0..places.len())
        .filter(|place| {
            let place = &places[*place];
            objects(place, PlaceKind::Members) > 1 && place.others == 0 && place.columns.common_names() > 1
        })
        .max_by_key(|place| (places[*place].columns.records, std::cmp::Reverse(*place)));
    if let Some(found) = keyed {
        let found = places.swap_remove(found);
        if is_by_columns(&found.columns) {
            let message =
                "the document is a table stored by columns: each member holds the values of one column by number";
            remarks.ask(Question::new("by_columns", message).remedy("--members", &[], KEY_NAME));
        }
        return Ok(found);
    }
    match documents {
        Some(found) => {
            ask_arrays(&places, 1, remarks);
            Ok(places.swap_remove(found))
        }
        None => Err(InferError::Unreadable {
            code: "not_objects",
            problem: "it is JSON, and its records are no objects".to_owned(),
            remedy: "records must be objects: give each value a name".to_owned(),
        }),
    }
}

fn ask_place<'a, 'b: 'a>(places: impl Iterator<Item = &'a RecordPlace<'b>>, remarks: &mut Remarks) {
    let mut question = Question::new("records", String::new());
    let mut named = Vec::new();
    for place in places.take(MAX_NAMED_PLACES) {
        named.push(format!(
            "`{}` ({} records)",
            shown(&place.pointer),
            place.columns.records
        ));
        question = question.remedy("--records", &[&place.pointer], "");
    }
    question.message = format!("the document has records at {}", named.join(" or "));
    remarks.ask(question);
}

/// Asks about an array of arrays that is longer than the records.
fn ask_arrays(places: &[RecordPlace<'_>], records: u64, remarks: &mut Remarks) {
    let longest = places
        .iter()
        .filter(|place| place.kind == PlaceKind::Array)
        .max_by_key(|place| place.arrays);
    let Some(longest) = longest.filter(|place| place.arrays > records) else {
        return;
    };
    let message = format!(
        "the document has {} arrays at `{}`, which cannot be records, and {records} objects beside them",
        longest.arrays,
        shown(&longest.pointer)
    );
    let chosen = places
        .iter()
        .filter(|place| place.kind == PlaceKind::Array && place.columns.records > 0);
    let chosen = chosen
        .max_by_key(|place| place.columns.records)
        .map_or("", |place| place.pointer.as_str());
    remarks.ask(Question::new("arrays", message).remedy("--records", &[chosen], ""));
}

/// Returns true if the names of all members are the numbers from 0.
fn is_by_columns(columns: &ObjectColumns<'_>) -> bool {
    columns
        .names()
        .skip(1)
        .enumerate()
        .all(|(place, name)| name == place.to_string())
}

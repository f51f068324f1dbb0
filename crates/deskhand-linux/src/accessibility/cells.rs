//! The cells of a spreadsheet, each called by its place.
//!
//! LibreOffice makes an object for a cell when somebody asks for it and drops it some seconds later, used or not. To a person
//! the same cell is the same place of the same sheet of the same document. That is what its element is called by here, and
//! the object that stands for it is found anew when it has gone. Nothing else is ever found anew.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt};
use tokio::sync::OnceCell;
use tokio::time::Instant;

use deskhand_core::desktop::ElementId;

use super::app::{ACCESSIBLE, App, Failure, PROPERTIES, Toolkit};
use super::bus::{Bus, CallError};
use super::event::{Event, What};
use super::table::TABLE;
use super::walk;
use super::wire::{self, role};

/// Cells whose objects are remembered. What is forgotten costs a question when it is used again.
const REMEMBERED: usize = 20_000;
/// Stands between a sheet and a place in an element's object. No object path of the bus has it.
const MARK: char = '#';
/// Letters of the last column are three; more are a word.
const LETTERS: usize = 4;

/// What is known of the cells of one application.
#[derive(Debug, Default)]
pub(super) struct Cells {
    /// By the table that first showed them.
    sheets: HashMap<Arc<str>, Sheet>,
    /// The objects that stand for cells, by the element's name of the cell.
    objects: HashMap<Arc<str>, Object>,
    /// The cells that objects stand for.
    cells: HashMap<Arc<str>, Arc<str>>,
}

/// Found by whoever needs it first, and shared.
type Object = Arc<OnceCell<Arc<str>>>;

#[derive(Clone, Debug)]
struct Sheet {
    document: ElementId,
    name: String,
    /// The object that shows it now.
    table: Arc<str>,
}

/// A place of a sheet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place<'a> {
    sheet: &'a str,
    row: i32,
    column: i32,
}

impl<'a> Place<'a> {
    /// The place that an element's object is, if it is one.
    fn of(object: &'a str) -> Option<Self> {
        let (sheet, place) = object.split_once(MARK)?;
        let (row, column) = place.split_once(',')?;
        Some(Self { sheet, row: row.parse().ok()?, column: column.parse().ok()? })
    }

    fn object(self) -> Arc<str> {
        let Self { sheet, row, column } = self;
        format!("{sheet}{MARK}{row},{column}").into()
    }
}

/// Whether an element's object is the place of a cell, so that the object of the bus has to be found.
pub(super) fn is_place(object: &str) -> bool {
    object.contains(MARK)
}

/// Row and column that a cell's own name says, such as `B4`.
pub(super) fn address(name: &str) -> Option<(i32, i32)> {
    let digits = name.find(|character: char| !character.is_ascii_uppercase())?;
    let (letters, row) = name.split_at(digits);
    if letters.is_empty() || letters.len() > LETTERS || !row.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let column = letters.bytes().fold(0, |column, letter| column * 26 + i32::from(letter - b'A') + 1);
    let row: i32 = row.parse().ok()?;
    (row > 0).then_some((row - 1, column - 1))
}

impl Cells {
    /// What the sheet with that name in `document`, which `table` shows, is called.
    fn sheet(&mut self, document: &ElementId, name: &str, table: &Arc<str>) -> Arc<str> {
        let is_it =
            |sheet: &Sheet| sheet.document == *document && (sheet.table == *table || sheet.name == name);
        if let Some((called, sheet)) = self.sheets.iter_mut().find(|(_, sheet)| is_it(sheet)) {
            sheet.table.clone_from(table);
            name.clone_into(&mut sheet.name);
            return Arc::clone(called);
        }
        let sheet = Sheet { document: document.clone(), name: name.to_owned(), table: Arc::clone(table) };
        self.sheets.insert(Arc::clone(table), sheet);
        Arc::clone(table)
    }

    /// Remembers that `object` stands for the cell at that place. Gives what its element is called by.
    fn learn(&mut self, place: Place<'_>, object: Arc<str>) -> Arc<str> {
        let cell = place.object();
        if self.objects.len() >= REMEMBERED {
            self.objects.clear();
            self.cells.clear();
        }
        let known =
            self.objects.insert(Arc::clone(&cell), Arc::new(OnceCell::new_with(Some(Arc::clone(&object)))));
        if let Some(known) = known.as_ref().and_then(|known| known.get()) {
            self.cells.remove(known);
        }
        self.cells.insert(object, Arc::clone(&cell));
        cell
    }

    /// Forgets the object of a cell, unless another one has been found since.
    fn forget(&mut self, cell: &str, object: &Object) {
        if self.objects.get(cell).is_some_and(|known| Arc::ptr_eq(known, object)) {
            self.objects.remove(cell);
            if let Some(object) = object.get() {
                self.cells.remove(object);
            }
        }
    }

    fn slot(&mut self, cell: &str) -> Object {
        if let Some(known) = self.objects.get(cell) {
            return Arc::clone(known);
        }
        let object = Object::default();
        self.objects.insert(cell.into(), Arc::clone(&object));
        object
    }

    /// The event as one of the cell's element, if it comes from an object that stands for a cell. That such an object goes
    /// says nothing about the cell.
    pub(super) fn named(&self, mut event: Event) -> Event {
        let goes = match &event.what {
            What::State(name, on) => *on && name == "defunct",
            What::Removed(_) => true,
            _ => false,
        };
        if !goes && let Some(cell) = self.cells.get(&event.source.object) {
            event.source.object = Arc::clone(cell);
        }
        event
    }
}

/// A sheet of a spreadsheet, as long as its table is read.
pub(super) struct Reading<'a> {
    app: &'a App,
    sheet: Arc<str>,
}

impl<'a> Reading<'a> {
    /// For the cells of `table`, if they are called by their places.
    pub(super) async fn of(
        bus: &Bus,
        app: &'a App,
        table: &ElementId,
        until: Instant,
    ) -> Result<Option<Self>, Failure> {
        if app.known_toolkit() != Toolkit::LibreOffice {
            return Ok(None);
        }
        let document = {
            let memory = app.memory();
            let parent = memory.mirror.parent(table).cloned();
            let is_document = |facts: &wire::Facts| facts.role == role::DOCUMENT_SPREADSHEET;
            parent.filter(|parent| memory.mirror.facts(parent).is_some_and(is_document))
        };
        let Some(document) = document else { return Ok(None) };
        let name = app.property::<String>(bus, &table.object, ACCESSIBLE, "Name", until).await?;
        let sheet = app.cells().sheet(&document, &name, &table.object);
        Ok(Some(Self { app, sheet }))
    }

    /// The element of the cell at that place, which `object` stands for now.
    pub(super) fn element(&self, row: i32, column: i32, object: ElementId) -> ElementId {
        let place = Place { sheet: &self.sheet, row, column };
        ElementId { object: self.app.cells().learn(place, object.object), ..object }
    }
}

/// The element that `object`, which was just handed out, is called by.
pub(super) async fn element_of(
    bus: &Bus,
    app: &App,
    object: ElementId,
    until: Instant,
) -> Result<ElementId, Failure> {
    let known = {
        let cells = app.cells();
        if cells.sheets.is_empty() {
            return Ok(object);
        }
        cells.cells.get(&object.object).cloned()
    };
    if let Some(cell) = known {
        return Ok(ElementId { object: cell, ..object });
    }
    let (role, name, parent) = tokio::join!(
        app.ask_for::<u32, _>(bus, &object.object, ACCESSIBLE, "GetRole", &(), until),
        app.property::<String>(bus, &object.object, ACCESSIBLE, "Name", until),
        app.ask(bus, &object.object, PROPERTIES, "Get", &(ACCESSIBLE, "Parent"), until),
    );
    if role? != role::TABLE_CELL {
        return Ok(object);
    }
    let parent = parent?;
    let body = parent.body();
    let table =
        body.deserialize::<zbus::zvariant::Value<'_>>().ok().and_then(|value| wire::element_in(&value));
    let (Some(table), Some((row, column))) = (table, address(&name?)) else { return Ok(object) };
    let mut cells = app.cells();
    let sheet = cells.sheets.iter().find(|(_, sheet)| sheet.table == table.object);
    let Some(sheet) = sheet.map(|(called, _)| Arc::clone(called)) else { return Ok(object) };
    let cell = cells.learn(Place { sheet: &sheet, row, column }, Arc::clone(&object.object));
    Ok(ElementId { object: cell, ..object })
}

/// A cell with the object that stands for it.
pub(super) struct Present<'a> {
    app: &'a App,
    cell: &'a str,
    slot: Object,
    pub(super) object: Arc<str>,
}

impl<'a> Present<'a> {
    /// The object that stands for the cell, as it was found before or anew.
    ///
    /// # Errors
    /// Of the object, if there is no such sheet any more.
    pub(super) async fn find(
        bus: &Bus,
        app: &'a App,
        cell: &'a str,
        until: Instant,
    ) -> Result<Self, Failure> {
        let slot = app.cells().slot(cell);
        let object = slot.get_or_try_init(|| found(bus, app, cell, until)).await?;
        let object = Arc::clone(object);
        Ok(Self { app, cell, slot, object })
    }

    /// The object that stands for the cell, if `failure` says that the one that did is no more.
    pub(super) async fn again(self, bus: &Bus, failure: &Failure, until: Instant) -> Option<Self> {
        if !is_unknown(failure) {
            return None;
        }
        let Self { app, cell, slot, .. } = self;
        app.cells().forget(cell, &slot);
        Self::find(bus, app, cell, until).await.ok()
    }
}

/// Whether the application says that it has no such object.
fn is_unknown(failure: &Failure) -> bool {
    matches!(failure, Failure::Object(CallError::Refused { name, .. }) if name.ends_with("UnknownObject"))
}

/// Asks for the object that stands for a cell.
async fn found(bus: &Bus, app: &App, cell: &str, until: Instant) -> Result<Arc<str>, Failure> {
    let gone = || Failure::Object(CallError::Malformed("there is no such cell any more".to_owned()));
    let place = Place::of(cell).ok_or_else(gone)?;
    let sheet = app.cells().sheets.get(place.sheet).cloned().ok_or_else(gone)?;
    let ask = |table: Arc<str>| async move {
        let body = (place.row, place.column);
        let reply = app.ask_object(bus, &table, TABLE, "GetAccessibleAt", &body, until).await?;
        walk::reference(&reply)?.ok_or_else(gone)
    };
    let object = match ask(Arc::clone(&sheet.table)).await {
        Err(failure) if is_unknown(&failure) => {
            let table = shown(bus, app, &sheet, until).await?.ok_or(failure)?;
            app.cells().sheet(&sheet.document, &sheet.name, &table);
            ask(table).await?
        }
        asked => asked?,
    };
    app.cells().cells.insert(Arc::clone(&object.object), cell.into());
    Ok(object.object)
}

/// The table that shows `sheet` now: there is a new one each time that the sheet comes to the front.
fn shown<'a>(
    bus: &'a Bus,
    app: &'a App,
    sheet: &'a Sheet,
    until: Instant,
) -> BoxFuture<'a, Result<Option<Arc<str>>, Failure>> {
    async move {
        for child in walk::children_of(bus, &sheet.document, until).await? {
            let name = app.property::<String>(bus, &child.object, ACCESSIBLE, "Name", until).await;
            if name.is_ok_and(|name| name == sheet.name) {
                return Ok(Some(child.object));
            }
        }
        Ok(None)
    }
    .boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(object: &str) -> ElementId {
        ElementId { owner: ":1.4".into(), object: object.into() }
    }

    #[test]
    fn a_cells_name_is_its_place() {
        assert_eq!(address("A1"), Some((0, 0)));
        assert_eq!(address("B4"), Some((3, 1)));
        assert_eq!(address("AA10"), Some((9, 26)));
        assert_eq!(address("XFD1048576"), Some((1_048_575, 16_383)));
        for name in ["", "A", "12", "A0", "R1C1", "a1", "A1 ", "WORDS5", "A99999999999"] {
            assert_eq!(address(name), None, "{name}");
        }
    }

    #[test]
    fn a_cell_is_called_the_same_whatever_object_stands_for_it() {
        let mut cells = Cells::default();
        let document = id("/document");
        let sheet = cells.sheet(&document, "Sheet1", &"/table/1".into());
        let place = Place { sheet: &sheet, row: 3, column: 1 };
        let first = cells.learn(place, "/7".into());
        assert!(is_place(&first) && !is_place("/table/1"));
        assert_eq!(Place::of(&first), Some(place));
        assert_eq!(cells.learn(place, "/8".into()), first);
        let from = |object: &str| Event { source: id(object), what: What::Text };
        assert_eq!(cells.named(from("/8")).source.object, first);
        assert_eq!(cells.named(from("/7")), from("/7"), "it stands for nothing any more");
        let ends = Event { source: id("/8"), what: What::State("defunct".to_owned(), true) };
        assert_eq!(cells.named(ends.clone()), ends);
    }

    #[test]
    fn a_sheet_is_the_same_when_it_comes_back_and_when_it_is_renamed() {
        let mut cells = Cells::default();
        let document = id("/document");
        let first = cells.sheet(&document, "Sheet1", &"/table/1".into());
        assert_ne!(cells.sheet(&document, "Sheet2", &"/table/2".into()), first);
        assert_ne!(cells.sheet(&id("/other"), "Sheet1", &"/table/3".into()), first, "of another document");
        assert_eq!(cells.sheet(&document, "Sheet1", &"/table/4".into()), first, "it has come back");
        assert_eq!(cells.sheet(&document, "Costs", &"/table/4".into()), first, "it has been renamed");
        assert_eq!(cells.sheets[&first].name, "Costs");
    }

    #[test]
    fn an_object_that_was_found_since_is_kept() {
        let mut cells = Cells::default();
        let place = Place { sheet: "/table/1", row: 0, column: 0 };
        let cell = cells.learn(place, "/7".into());
        let old = cells.slot(&cell);
        cells.learn(place, "/8".into());
        cells.forget(&cell, &old);
        assert_eq!(cells.slot(&cell).get().map(|object| object.to_string()), Some("/8".to_owned()));
        let new = cells.slot(&cell);
        cells.forget(&cell, &new);
        assert_eq!(cells.slot(&cell).get(), None);
    }
}

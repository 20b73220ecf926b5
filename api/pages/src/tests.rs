mod answers;
mod charts;
mod document;
mod growth;
mod hostile;
mod html;
mod shape;
mod words;

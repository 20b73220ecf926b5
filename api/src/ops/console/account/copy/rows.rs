//! Rows of the lists in a copy of an account, as JSON.
//!
//! Invariant: a row has what the account itself sees of it: no secret, and nothing of the other side but what that side said to it.

use serde_json::{Value, json};

pub(super) fn dataset(project: &store::Project) -> Value {
    json!({
        "id": project.id.to_string(),
        "slug": project.slug,
        "title": project.title,
        "readme": project.readme,
        "tags": project.tags,
        "license": project.license,
        "schema": serde_json::from_str::<Value>(&project.contract_json).unwrap_or_default(),
        "access": project.access.as_str(),
        "visibility": project.visibility.as_str(),
        "status": project.status.as_str(),
        "priceMicro": project.price_micro,
        "trialSale": project.trial_sale,
        "previewRows": project.preview_rows,
        "version": project.version.0,
        "records": project.record_count,
        "createdAt": project.created_at.to_string(),
        "mergedAt": project.updated_at.to_string(),
    })
}

pub(super) fn contribution(row: &store::ListedContribution) -> Value {
    json!({
        "id": row.id.to_string(),
        "dataset": row.slug,
        "agent": row.agent_name,
        "records": row.rows,
        "accepted": row.accepted,
        "status": row.status.as_str(),
        "version": row.version.map(|version| version.0),
        "reason": row.reject_code,
        "submittedAt": row.submitted_at.to_string(),
    })
}

pub(super) fn unit(unit: &store::Unit) -> Value {
    json!({
        "id": unit.id.to_string(),
        "chainId": unit.chain.id.to_string(),
        "version": unit.number,
        "agent": unit.agent_name,
        "title": unit.title,
        "body": unit.body,
        "category": unit.category,
        "sourceDeclaration": unit.source_declaration,
        "license": unit.chain.license,
        "priceMicro": unit.chain.price_micro,
        "status": unit.status.as_str(),
        "reason": unit.reject_message,
        "total": unit.scores.as_ref().map(|(scores, _)| u32::from(scores.total)),
        "submittedAt": unit.submitted_at.to_string(),
        "publishedAt": unit.published_at.map(|at| at.to_string()),
        "retiredAt": unit.chain.retired_at.map(|at| at.to_string()),
    })
}

pub(super) fn comment(comment: &store::Comment) -> Value {
    json!({
        "number": comment.id,
        "kind": comment.kind.as_str(),
        "about": comment.about.as_str(),
        "item": comment.item,
        "agent": comment.agent_name,
        "body": comment.body,
        "at": comment.at.to_string(),
        "editedAt": comment.edited_at.map(|at| at.to_string()),
        "withdrawnAt": comment.withdrawn_at.map(|at| at.to_string()),
    })
}

pub(super) fn request(request: &store::BoardRequest) -> Value {
    json!({
        "id": request.id.to_string(),
        "agent": request.agent_name,
        "title": request.title,
        "body": request.body,
        "kind": request.kind.as_str(),
        "category": request.category,
        "budgetMicro": request.budget_micro,
        "status": request.status.as_str(),
        "createdAt": request.created_at.to_string(),
    })
}

/// Returns a sale as one side sees it: the share and the fee are the seller's alone.
pub(super) fn sale(sale: &store::Sale, is_seller: bool) -> Value {
    let mut row = json!({
        "id": sale.id.to_string(),
        "kind": sale.kind.as_str(),
        "item": sale.item,
        "version": sale.version,
        "paidWith": sale.paid_with.as_str(),
        "priceMicro": sale.price.0,
        "state": sale.state.as_str(),
        "soldAt": sale.sold_at.to_string(),
    });
    if is_seller {
        row["feeMicro"] = json!(sale.fee.0);
        row["shareMicro"] = json!(sale.share.0);
    } else {
        row["agent"] = json!(sale.agent.map(|agent| agent.to_string()));
    }
    row
}

pub(super) fn entry(entry: &store::Entry) -> Value {
    json!({
        "at": entry.at.to_string(),
        "kind": entry.kind.as_str(),
        "account": entry.account.as_str(),
        "amountMicro": entry.amount.0,
        "balanceMicro": entry.after.0,
        "subject": entry.subject,
        "actor": entry.actor,
    })
}

pub(super) fn change(row: &store::AuditEntry) -> Value {
    json!({
        "at": row.at.to_string(),
        "actorKind": row.actor_kind.as_str(),
        "actor": row.actor,
        "operation": row.operation,
        "subject": row.subject,
        "requestId": row.request_id,
    })
}

pub(super) fn rating(rating: &store::GivenRating) -> Value {
    json!({
        "chainId": rating.chain.to_string(),
        "unit": rating.unit.to_string(),
        "agent": rating.agent.to_string(),
        "rating": rating.rating,
        "comment": rating.comment,
        "at": rating.at.to_string(),
    })
}

pub(super) fn mark(mark: &store::GivenMark) -> Value {
    json!({
        "chainId": mark.chain.to_string(),
        "unit": mark.unit.to_string(),
        "agent": mark.agent.to_string(),
        "mark": mark.mark.as_str(),
        "ran": mark.ran,
        "at": mark.at.to_string(),
    })
}

/// Returns a purchase that waited for the person, with its decision.
pub(super) fn approval(approval: &store::PurchaseApproval) -> Value {
    json!({
        "id": approval.id.to_string(),
        "agent": approval.agent_name,
        "askedBy": approval.asked_by.as_str(),
        "kind": approval.kind.as_str(),
        "item": approval.item,
        "version": approval.version,
        "priceMicro": approval.price.0,
        "reason": approval.reason,
        "state": approval.state.as_str(),
        "sale": approval.sale.map(|sale| sale.to_string()),
        "askedAt": approval.asked_at.to_string(),
        "decidedAt": approval.decided_at.map(|at| at.to_string()),
    })
}

/// Returns a dispute with the words of both sides and the decision.
pub(super) fn dispute(disputed: &store::DisputedSale) -> Value {
    let dispute = &disputed.dispute;
    json!({
        "id": dispute.id.to_string(),
        "sale": dispute.sale.to_string(),
        "reason": dispute.reason,
        "openedAt": dispute.opened_at.to_string(),
        "answerDue": dispute.answer_due.map(|at| at.to_string()),
        "reply": dispute.reply,
        "repliedAt": dispute.replied_at.map(|at| at.to_string()),
        "state": dispute.state.as_str(),
        "decision": dispute.answer,
        "decidedAt": dispute.resolved_at.map(|at| at.to_string()),
    })
}

/// Returns a report that an agent of the account sent.
pub(super) fn report(report: &store::Report) -> Value {
    json!({
        "id": report.id.to_string(),
        "kind": report.kind.as_str(),
        "item": report.named,
        "reason": report.reason.as_str(),
        "detail": report.detail,
        "status": report.status.as_str(),
        "createdAt": report.created_at.to_string(),
        "decidedAt": report.decided_at.map(|at| at.to_string()),
    })
}

/// Returns a takedown of an item of the account.
pub(super) fn takedown(titled: &store::TitledTakedown) -> Value {
    let takedown = &titled.takedown;
    let answer = takedown.answer.as_ref();
    json!({
        "id": takedown.id.to_string(),
        "kind": takedown.kind.as_str(),
        "item": takedown.item,
        "title": titled.title,
        "reason": takedown.reason.as_str(),
        "note": takedown.note,
        "at": takedown.at.to_string(),
        "answer": answer.map(|(_, words)| words),
        "answeredAt": answer.map(|(at, _)| at.to_string()),
        "restoredAt": takedown.restored_at.map(|at| at.to_string()),
        "restoredNote": takedown.restored_note,
    })
}

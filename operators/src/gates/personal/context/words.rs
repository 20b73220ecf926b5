//! The words that tell the kind of a number, and those that only lead to one.
//!
//! Invariant: ASCII words match in any case, other words as they are spelled here.

use std::sync::LazyLock;

use super::ContextFlags;

/// Words that lead to a number, and those that do so at the end of a word.
pub(super) const LINKS: [&str; 27] = [
    "no",
    "nos",
    "nr",
    "nrs",
    "num",
    "number",
    "numbers",
    "n",
    "nº",
    "numero",
    "número",
    "numéro",
    "nummer",
    "номер",
    "code",
    "codes",
    "value",
    "values",
    "id",
    "ids",
    "is",
    "are",
    "was",
    "ist",
    "est",
    "es",
    "é",
];
pub(super) const ENDINGS: [&str; 17] = [
    "번호", "번", "는", "은", "이", "가", "의", "番号", "番", "号", "號", "は", "が", "の", "为", "為", "是",
];

/// Each word with its meaning. ASCII words match in any case, other words as they are spelled here.
pub(super) static WORDS: LazyLock<Vec<(&'static str, ContextFlags)>> = LazyLock::new(|| {
    LISTS
        .iter()
        .flat_map(|(hint, words)| words.split('|').map(|word| (word.trim(), *hint)))
        .collect()
});

const LISTS: [(ContextFlags, &str); 20] = [
    (
        ContextFlags::PHONE,
        "phone|phones|telephone|telephones|tel|cell phone|cellphone|cell number|call me|text me|\
         call us|call at|call on|sms to|contact me|contact us|contact at|contact on|mobile number|mobile no|contact number|\
         contact no|fax number|문자 주세요|문자주세요|문자 남겨|문자 보내|문자메시지|문자 메시지|\
         whatsapp|wa.me|callto|ring me|handynummer|telefon|telefonnummer|telefone|telefono|telefonos|mobiltelefon|\
         tel.|movil|celular|cellulare|mobil|mobilnummer|rufnummer|telefoon|telefoonnummer|msisdn|nomor hp|no hp|telp|\
         puhelin|puh|tlf|téléphones|TÉLÉPHONE|TÉL|teléfonos|TELÉFONO|móviles|MÓVIL|numer telefonu|komórka|teléfono|móvil|téléphone|tél|Téléphone|Tél|điện thoại|sđt|SĐT|\
         전화|전화번호|휴대폰|핸드폰|휴대전화|연락처|연락|電話|電話番号|携帯|手机|手機|电话|联系方式|联系电话|\
         телефон|Телефон|тел.|Тел.|сотовый|звоните|هاتف|جوال|الهاتف|फोन|मोबाइल|โทร",
    ),
    (ContextFlags::LOOSE, "mobile|mob|call|sms|fax|contact|dial"),
    (ContextFlags::TEXTED, "문자"),
    (
        ContextFlags::CARD,
        "card|cards|credit card|debit card|visa|mastercard|amex|american express|pan|cc|ccn|creditcard|tarjeta|carte|\
         carte bancaire|cb|kreditkarte|kartennummer|karte|carta|cartão|cartao|cvv|cvc|kort|kaart|kortnummer|\
         카드|신용카드|체크카드|カード|クレジット|卡号|信用卡|银行卡|卡號|карта|карты|карту|Карта|картой|بطاقة|कार्ड",
    ),
    (
        ContextFlags::EMAIL,
        "mail|email|e-mail|mailto|emails|correo|courriel|mails|이메일|메일|メール|邮箱|邮件|電郵|почта|почту|почте|البريد|ईमेल",
    ),
    (
        ContextFlags::KR_RESIDENT,
        "rrn|resident registration|resident registration number|resident number|jumin|alien registration|\
         주민등록번호|주민번호|주민등록|주민|외국인등록번호|외국인등록",
    ),
    (
        ContextFlags::US_SSN,
        "ssn|ssns|social security|soc sec|seguro social|ss#|social security number|itin|tax id",
    ),
    (ContextFlags::UK_NINO, "nino|national insurance|ni number|ni no|nin"),
    (
        ContextFlags::ES_DNI,
        "dni|nie|nif|documento nacional|documento de identidad",
    ),
    (ContextFlags::BR_CPF, "cpf|cadastro de pessoas"),
    (ContextFlags::IN_AADHAAR, "aadhaar|aadhar|adhaar|uidai|आधार"),
    (
        ContextFlags::CN_RESIDENT,
        "身份证|身份證|公民身份|id card|resident identity",
    ),
    (
        ContextFlags::FR_NIR,
        "nir|insee|sécurité sociale|securite sociale|sécu|secu",
    ),
    (ContextFlags::PL_PESEL, "pesel"),
    (
        ContextFlags::CA_SIN,
        "social insurance|sin number|sin no|nas|assurance sociale",
    ),
    (ContextFlags::JP_MY_NUMBER, "my number|mynumber|マイナンバー|個人番号"),
    (
        ContextFlags::SE_PERSON,
        "personnummer|personal identity number|samordningsnummer|pnr",
    ),
    (ContextFlags::ID, "id|ids"),
    (
        ContextFlags::THING,
        "uid|uuid|guid|order|orders|invoice|isbn|issn|doi|sku|part|p/n|pn|model|serial|s/n|sn|hash|sha|md5|sha256|commit|\
         tracking|parcel|version|ver|ean|upc|gtin|barcode|imei|iccid|imsi|ref|reference|ticket|case|lot|batch|build|\
         timestamp|epoch|ts|time|nonce|block|tx|txid|transaction|asin|product|item|catalog|cas|patent|rfc|bug|issue|pid|\
         port|offset|size|bytes|count|total|amount|price|sum|key|checksum|crc|seq|sequence|type|brand|status|rate|\
         percent|seed|random|population|revenue|rows|row|records|steps|tokens|params|parameters|digits|pi|prime|accession|\
         coordinates|coords|lat|lon|lng|date|bestellnummer|auftrag|rechnung|artikelnummer|seriennummer|commande|facture|\
         pedido|factura|заказ|заказа|артикул|ordine|bestelling|firmware|hs code|dewey|vin|container|flight|docket",
    ),
    (
        ContextFlags::THING,
        "주문|주문번호|송장|운송장|품번|모델|모델명|사업자|사업자등록번호|고유번호|일련번호|제품|접수번호|문서번호|법인등록번호|\
         바코드|订单|訂單|订单号|単号|注文|注文番号|型番|品番|商品|编号|序列号|伝票|受付番号|発注",
    ),
];

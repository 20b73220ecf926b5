//! The kinds of personal data that the gate knows, by the rules that find them.
//!
//! Invariant: codes are part of the interface. New ones may be added, existing ones never change.

/// A kind of personal data, and the rule that finds it. Phones and cards have several rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Email,
    PhoneInternational,
    PhoneDialledOut,
    PhoneCalled,
    PhoneNational,
    CardInForm,
    CardCalled,
    Iban,
    KrResidentNumber,
    UsSsn,
    UkNino,
    EsDni,
    ItCodiceFiscale,
    FrNir,
    PlPesel,
    SePersonnummer,
    BrCpf,
    CaSin,
    InAadhaar,
    CnResidentId,
    JpMyNumber,
    PassportMrz,
}

impl Kind {
    pub(super) const ALL: [Self; 22] = [
        Self::Email,
        Self::PhoneInternational,
        Self::PhoneDialledOut,
        Self::PhoneCalled,
        Self::PhoneNational,
        Self::CardInForm,
        Self::CardCalled,
        Self::Iban,
        Self::KrResidentNumber,
        Self::UsSsn,
        Self::UkNino,
        Self::EsDni,
        Self::ItCodiceFiscale,
        Self::FrNir,
        Self::PlPesel,
        Self::SePersonnummer,
        Self::BrCpf,
        Self::CaSin,
        Self::InAadhaar,
        Self::CnResidentId,
        Self::JpMyNumber,
        Self::PassportMrz,
    ];

    /// Returns the code of a refusal.
    pub(super) const fn code(self) -> &'static str {
        match self {
            Self::Email => "email",
            Self::PhoneInternational | Self::PhoneDialledOut | Self::PhoneCalled | Self::PhoneNational => "phone",
            Self::CardInForm | Self::CardCalled => "payment_card",
            Self::Iban => "iban",
            Self::KrResidentNumber => "kr_resident_number",
            Self::UsSsn => "us_ssn",
            Self::UkNino => "uk_nino",
            Self::EsDni => "es_dni",
            Self::ItCodiceFiscale => "it_codice_fiscale",
            Self::FrNir => "fr_nir",
            Self::PlPesel => "pl_pesel",
            Self::SePersonnummer => "se_personnummer",
            Self::BrCpf => "br_cpf",
            Self::CaSin => "ca_sin",
            Self::InAadhaar => "in_aadhaar",
            Self::CnResidentId => "cn_resident_id",
            Self::JpMyNumber => "jp_my_number",
            Self::PassportMrz => "passport_mrz",
        }
    }

    /// Returns the name of the rule, as a place in the guide.
    pub(super) const fn rule(self) -> &'static str {
        match self {
            Self::PhoneInternational => "phone-international",
            Self::PhoneDialledOut => "phone-dialled-out",
            Self::PhoneCalled => "phone-called",
            Self::PhoneNational => "phone-national",
            Self::CardInForm => "payment-card-in-form",
            Self::CardCalled => "payment-card-called",
            Self::Email => "email",
            Self::Iban => "iban",
            Self::KrResidentNumber => "kr-resident-number",
            Self::UsSsn => "us-ssn",
            Self::UkNino => "uk-nino",
            Self::EsDni => "es-dni",
            Self::ItCodiceFiscale => "it-codice-fiscale",
            Self::FrNir => "fr-nir",
            Self::PlPesel => "pl-pesel",
            Self::SePersonnummer => "se-personnummer",
            Self::BrCpf => "br-cpf",
            Self::CaSin => "ca-sin",
            Self::InAadhaar => "in-aadhaar",
            Self::CnResidentId => "cn-resident-id",
            Self::JpMyNumber => "jp-my-number",
            Self::PassportMrz => "passport-mrz",
        }
    }

    /// Returns the kind in words, with its article.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Email => "an e-mail address",
            Self::PhoneInternational | Self::PhoneDialledOut | Self::PhoneCalled | Self::PhoneNational => {
                "a phone number"
            }
            Self::CardInForm | Self::CardCalled => "a payment card number",
            Self::Iban => "a bank account number (IBAN)",
            Self::KrResidentNumber => "a Korean resident registration number",
            Self::UsSsn => "a US social security number",
            Self::UkNino => "a UK national insurance number",
            Self::EsDni => "a Spanish identity number (DNI or NIE)",
            Self::ItCodiceFiscale => "an Italian tax code",
            Self::FrNir => "a French social security number",
            Self::PlPesel => "a Polish PESEL number",
            Self::SePersonnummer => "a Swedish personal identity number",
            Self::BrCpf => "a Brazilian CPF number",
            Self::CaSin => "a Canadian social insurance number",
            Self::InAadhaar => "an Indian Aadhaar number",
            Self::CnResidentId => "a Chinese resident identity number",
            Self::JpMyNumber => "a Japanese individual number",
            Self::PassportMrz => "the machine-readable zone of a passport or identity card",
        }
    }
}

/// A set of kinds, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
// A set of bits, because it is made for every number in every record, mostly to stay empty.
pub(super) struct Kinds(u32);

impl Kinds {
    pub(super) const NONE: Self = Self(0);

    pub(super) const fn insert(&mut self, kind: Kind) {
        self.0 |= 1 << kind as u32;
    }

    /// Returns the union of two sets.
    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the kinds whose code no kind of `other` has.
    pub(super) fn without(self, other: Self) -> Self {
        if other.is_empty() {
            return self;
        }
        let mut left = Self::NONE;
        for kind in self
            .all()
            .filter(|kind| other.all().all(|said| said.code() != kind.code()))
        {
            left.insert(kind);
        }
        left
    }

    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns a kind for each code: the first that the set has.
    pub(super) fn iter(self) -> impl Iterator<Item = Kind> {
        let mut last = "";
        self.all()
            .filter(move |kind| std::mem::replace(&mut last, kind.code()) != kind.code())
    }

    fn all(self) -> impl Iterator<Item = Kind> {
        Kind::ALL
            .into_iter()
            .filter(move |kind| self.0 & (1 << *kind as u32) != 0)
    }
}

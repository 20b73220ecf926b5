//! Top-level domains.
//!
//! The lists have every delegated name (IANA, by the public suffix list of August 2026), except those that are also
//! common endings of file names, program parts and home hosts: `zip`, `map`, `data`, `box` and the like.

use std::collections::HashSet;
use std::sync::LazyLock;

/// Generic names.
const GENERIC: &str = "aaa aarp abb abbott abbvie abc able abogado abudhabi academy accenture accountant accountants \
    aco actor ads adult aeg aero aetna afl africa agakhan agency aig airbus airforce airtel akdn alibaba alipay \
    allfinanz allstate ally alsace alstom amazon americanexpress americanfamily amex amfam amica amsterdam analytics \
    android anquan anz aol apartments app apple aquarelle arab aramco archi army art arte asda asia associates \
    athleta attorney auction audi audible audio auspost author auto autos aws axa azure baby baidu banamex band bank \
    bar barcelona barclaycard barclays barefoot bargains baseball basketball bauhaus bayern bbc bbt bbva bcg bcn \
    beats beauty beer berlin best bestbuy bet bharti bible bid bike bing bingo bio biz black blackfriday blockbuster \
    blog bloomberg blue bms bmw bnpparibas boats boehringer bofa bom bond boo book booking bosch bostik boston bot \
    boutique bradesco bridgestone broadway broker brother brussels build builders business buy buzz bzh cafe cal \
    calvinklein cam camera camp canon capetown capital capitalone car caravan cards care career careers cars casa \
    case cash casino cat catering catholic cba cbn cbre center ceo cern cfa cfd chanel channel charity chase chat \
    cheap chintai christmas chrome church cipriani circle cisco citadel citi citic city claims cleaning click clinic \
    clinique clothing cloud club clubmed coach codes coffee college cologne com commbank community company compare \
    computer comsec condos construction consulting contact contractors cooking cool coop corsica country coupon \
    coupons courses cpa credit creditcard creditunion cricket crown crs cruise cruises cuisinella cymru cyou dad \
    dance date dating datsun day dclk dds deal dealer deals degree delivery dell deloitte delta democrat dental \
    dentist desi design dev dhl diamonds diet digital direct directory discount discover dish diy dnp doctor dog \
    domains download drive dtv dubai dupont durban dvag dvr earth eat eco edeka edu education email emerck energy \
    engineer engineering enterprises epson equipment ericsson erni esq estate eurovision eus events exchange expert \
    exposed express extraspace fage fail fairwinds faith family fan fans farm farmers fashion fast fedex feedback \
    ferrari ferrero fidelity fido film final finance financial fire firestone firmdale fish fishing fit fitness \
    flickr flights flir florist flowers fly food football ford forex forsale forum foundation fox free fresenius frl \
    frogans frontier ftr fujitsu fun fund furniture futbol fyi gal gallery gallo gallup game games gap garden gay \
    gbiz gdn gea gent genting george ggee gift gifts gives giving glass gle global globo gmail gmbh gmo gmx godaddy \
    gold goldpoint golf goodyear goog google gop got gov grainger graphics gratis green gripe grocery group gucci \
    guge guide guitars guru hair hamburg hangout haus hbo hdfc hdfcbank health healthcare help helsinki here hermes \
    hiphop hisamitsu hitachi hiv hkt hockey holdings holiday homedepot homegoods homes homesense honda horse hospital \
    host hosting hot hotel hotels hotmail house how hsbc hughes hyatt hyundai ibm icbc ice icu ieee ifm ikano imamat \
    imdb immo immobilien inc industries infiniti info ing ink institute insurance insure int international intuit \
    investments ipiranga irish ismaili ist istanbul itau itv jaguar jcb jeep jetzt jewelry jio jll jmp jnj jobs \
    joburg jot joy jpmorgan jprs juegos juniper kaufen kddi kerryhotels kerryproperties kfh kia kids kim kindle \
    kitchen kiwi koeln komatsu kosher kpmg kpn krd kred kuokgroup kyoto lacaixa lamborghini lamer land landrover \
    lanxess lasalle lat latino latrobe law lawyer lds lease leclerc lefrak legal lego lexus lgbt lidl life \
    lifeinsurance lifestyle lighting like lilly limited limo lincoln link live living llc llp loan loans locker locus \
    lol london lotte lotto love lpl lplfinancial ltd ltda lundbeck luxe luxury madrid maif maison makeup man \
    management mango market marketing markets marriott marshalls mattel mba mckinsey med media meet melbourne meme \
    memorial men menu merck merckmsd miami microsoft mil mini mint mit mitsubishi mlb mls mma mobi mobile moda moe \
    moi mom monash money monster mormon mortgage moscow moto motorcycles movie msd mtn mtr museum music nab nagoya \
    name navy nba nec net netbank netflix network neustar news next nextdirect nexus nfl ngo nhk nico nike nikon \
    ninja nissan nissay nokia norton now nowruz nowtv nra nrw ntt nyc obi observer office okinawa olayan olayangroup \
    ollo omega one ong onion onl online ooo oracle orange org organic origins osaka otsuka ott ovh page panasonic \
    paris pars partners parts party pay pccw pet pfizer pharmacy phd philips phone photo photography photos physio \
    pics pictet pictures pid pin ping pink pioneer pizza place play playstation plumbing plus pnc pohl poker politie \
    porn post praxi press prime pro productions prof progressive promo properties property protection pru prudential \
    pub pwc qpon quebec quest racing radio realestate realtor realty recipes red redumbrella rehab reise reisen reit \
    reliance ren rent rentals repair report republican rest restaurant review reviews rexroth rich richardli ricoh \
    ril rio rip rocks rodeo rogers room rsvp rugby ruhr run rwe ryukyu saarland safe safety sakura sale salon \
    samsclub samsung sandvik sandvikcoromant sanofi sap sarl sas saxo sbi sbs scb schaeffler schmidt scholarships \
    school schule schwarz science scot search seat secure security seek sener services seven sew sex sexy sfr \
    shangrila sharp shell shia shiksha shoes shop shopping shouji show silk sina singles site ski skin sky skype \
    sling smart smile sncf soccer social softbank software sohu solar solutions song sony soy spa space sport spot \
    srl stada staples star statebank statefarm stc stcgroup stockholm storage store stream studio study style sucks \
    supplies supply support surf surgery suzuki swatch swiss sydney systems taipei talk taobao tatamotors tatar \
    tattoo tax taxi tci tdk team tech technology tel temasek tennis teva thd theater theatre tiaa tickets tienda tips \
    tires tirol tjmaxx tjx tkmaxx tmall today tokyo tools top toray toshiba total tours town toyota toys trade \
    trading training travel travelers travelersinsurance trust trv tube tui tunes tushu tvs ubank ubs unicom \
    university uno uol ups vacations vana vanguard vegas ventures verisign versicherung vet viajes video vig viking \
    villas vin vip virgin visa vision viva vivo vlaanderen vodka volvo vote voting voto voyage wales walmart walter \
    wang wanggou watch watches weather weatherchannel web webcam weber website wed wedding weibo weir whoswho wien \
    wiki williamhill win windows wine winners wme woodside work works world wow wtc wtf xbox xerox xihuan xin xxx xyz \
    yachts yahoo yamaxun yandex yodobashi yoga yokohama you youtube yun zappos zara zero zone zuerich";

/// Names that occur in addresses and are not delegated; those for examples are reserved (RFC 2606).
const UNDELEGATED: &str = "example test invalid mail centre";

/// Country codes (ISO 3166-1 alpha-2 as delegated by IANA).
const COUNTRIES: &str = "ac ad ae af ag ai al am ao aq ar as at au aw ax az ba bb bd be bf bg bh bi bj bm bn bo br bs bt bw \
    by bz ca cc cd cf cg ch ci ck cl cm cn co cr cu cv cw cx cy cz de dj dk dm do dz ec ee eg er es et eu fi fj fk fm fo fr \
    ga gd ge gf gg gh gi gl gm gn gp gq gr gs gt gu gw gy hk hm hn hr ht hu id ie il im in io iq ir is it je jm jo jp ke kg \
    kh ki km kn kp kr kw ky kz la lb lc li lk lr ls lt lu lv ly ma mc md me mg mh mk ml mm mn mo mp mq mr ms mt mu mv mw mx \
    my mz na nc ne nf ng ni nl no np nr nu nz om pa pe pf pg ph pk pl pm pn pr ps pt pw py qa re ro rs ru rw sa sb sc sd se \
    sg sh si sk sl sm sn so sr ss st su sv sx sy sz tc td tf tg th tj tk tl tm tn to tr tt tv tw tz ua ug uk us uy uz va vc \
    ve vg vi vn vu wf ws ye yt za zm zw";

/// Names in other scripts or with letters beyond ASCII.
const OTHER_SCRIPTS: &str = "vermögensberater vermögensberatung ελ ευ бг бел дети ею католик ком мкд мон москва \
    онлайн орг рус рф сайт срб укр қаз հայ ישראל קום ابوظبي ارامكو الاردن البحرين الجزائر السعودية السعوديه السعودیة \
    السعودیۃ العليان المغرب اليمن امارات ايران ایران بارت بازار بيتك بھارت تونس سودان سوريا سورية شبكة عراق عرب عمان \
    فلسطين قطر كاثوليك كوم مصر مليسيا موريتانيا موقع همراه پاكستان پاکستان ڀارت कॉम नेट भारत भारतम् भारोत संगठन বাংলা \
    ভারত ভাৰত ਭਾਰਤ ભારત ଭାରତ இந்தியா இலங்கை சிங்கப்பூர் భారత్ ಭಾರತ ഭാരതം ලංකා คอม ไทย ລາວ გე みんな アマゾン クラウド \
    グーグル コム ストア セール ファッション ポイント 世界 中信 中国 中國 中文网 亚马逊 企业 佛山 信息 健康 八卦 公司 \
    公益 台湾 台灣 商城 商店 商标 嘉里 嘉里大酒店 在线 大拿 天主教 娱乐 家電 广东 微博 慈善 我爱你 手机 招聘 政务 \
    政府 新加坡 新闻 时尚 書籍 机构 淡马锡 游戏 澳門 澳门 点看 移动 组织机构 网址 网店 网站 网络 联通 臺灣 谷歌 购物 \
    通販 集团 電訊盈科 飞利浦 食品 餐厅 香格里拉 香港 닷넷 닷컴 삼성 한국";

/// Names of other scripts that may be followed by text without a space.
const STICKY: [&str; 16] = [
    "한국",
    "닷컴",
    "닷넷",
    "中国",
    "中國",
    "香港",
    "台灣",
    "台湾",
    "рф",
    "бел",
    "укр",
    "みんな",
    "भारत",
    "السعودية",
    "امارات",
    "公司",
];

/// Endings of files or private networks, which are never domains, even next to a word for e-mail.
const NEVER: &str = "png jpg jpeg gif svg webp ico css html htm json xml yaml yml toml txt csv pdf zip gz tar jar exe dll \
    local localhost localdomain internal lan intranet corp home service socket target timer mount slice scope js ts jsx tsx \
    java cpp hpp class conf cfg ini log lock sock bak tmp map wasm";

/// The domains that are kept for examples and tests (RFC 2606, RFC 6761): nobody has an address there.
pub(super) const RESERVED: [&str; 7] = [
    "example.com",
    "example.net",
    "example.org",
    "example",
    "test",
    "invalid",
    "localhost",
];

/// Returns true if the domain is one that is kept for examples and tests, or below one.
pub(super) fn is_reserved(domain: &str) -> bool {
    let domain = domain.as_bytes();
    RESERVED.iter().any(|name| {
        let start = domain.len().checked_sub(name.len());
        start.is_some_and(|start| {
            domain[start..].eq_ignore_ascii_case(name.as_bytes()) && (start == 0 || domain[start - 1] == b'.')
        })
    })
}

/// What follows `your` in an address that a reader is to replace.
const YOURS: [&str; 18] = [
    "account",
    "address",
    "app",
    "company",
    "domain",
    "email",
    "host",
    "id",
    "mail",
    "name",
    "org",
    "organization",
    "project",
    "server",
    "site",
    "team",
    "user",
    "username",
];
/// The least letters `x` of a part that a reader is to replace.
const MIN_PLACEHOLDER_LETTERS: usize = 3;
/// The most letters before them.
const MAX_LETTERS_BEFORE: usize = 2;

/// Returns true if an address is one that its reader is to replace: `uXXXXX@…`, `your-name@…` or `…@yourdomain.com`.
pub(super) fn is_placeholder(local: &str, domain: &str) -> bool {
    // The last label is a top-level domain: `xxx` is one.
    let labels = domain.rsplit('.').skip(1);
    labels.chain([local]).any(|part| {
        let part = part.to_lowercase();
        let is_yours = part.strip_prefix("your").is_some_and(|rest| {
            let rest = rest.trim_start_matches(['-', '_', '.']);
            YOURS.contains(&rest)
        });
        let before = part.trim_end_matches('x');
        let is_crossed = part.len() - before.len() >= MIN_PLACEHOLDER_LETTERS
            && before.len() <= MAX_LETTERS_BEFORE
            && before.bytes().all(|byte| byte.is_ascii_alphabetic());
        is_yours || is_crossed
    })
}

static GENERIC_NAMES: LazyLock<HashSet<&str>> = LazyLock::new(|| names(&[GENERIC, UNDELEGATED]));
static COUNTRY_NAMES: LazyLock<HashSet<&str>> = LazyLock::new(|| names(&[COUNTRIES]));
static OTHER_NAMES: LazyLock<HashSet<&str>> = LazyLock::new(|| names(&[OTHER_SCRIPTS]));
static NEVER_NAMES: LazyLock<HashSet<&str>> = LazyLock::new(|| names(&[NEVER]));

fn names(lists: &[&'static str]) -> HashSet<&'static str> {
    lists.iter().flat_map(|list| list.split_whitespace()).collect()
}

/// Returns the length of the top-level domain that `label` begins with. Text of another script may follow some of them
/// directly, and any of them next to a word for e-mail, which `called` reports.
pub(super) fn top_level(label: &str, called: &impl Fn() -> bool) -> Option<usize> {
    if !label.is_ascii() {
        if OTHER_NAMES.contains(label.to_lowercase().as_str()) {
            return Some(label.len());
        }
        let begins = |name: &&str| label.starts_with(*name);
        let sticky = STICKY.into_iter().find(begins);
        if let Some(name) = sticky.or_else(|| OTHER_SCRIPTS.split_whitespace().find(begins).filter(|_| called())) {
            return Some(name.len());
        }
    }
    // Any such label: the encoded names (RFC 3492) are too many to list, and nothing else begins so.
    if label.len() > 4 && label.is_char_boundary(4) && label[..4].eq_ignore_ascii_case("xn--") {
        return Some(label.len());
    }
    let length = label.bytes().take_while(u8::is_ascii_alphabetic).count();
    let (name, rest) = label.split_at(length);
    // No top-level domain has a digit outside of `xn--`, so this is a version or a file name.
    if rest.starts_with(|character: char| character.is_ascii_digit()) {
        return None;
    }
    let name = name.to_ascii_lowercase();
    let listed = |list: &HashSet<&str>| list.contains(name.as_str());
    let known = match length {
        0 | 1 => false,
        // Every two letters after a dot would otherwise make an address of a file name such as
        // `user@build.rb`.
        2 => listed(&COUNTRY_NAMES),
        _ => listed(&GENERIC_NAMES) || (length <= 18 && !listed(&NEVER_NAMES) && called()),
    };
    known.then_some(length)
}

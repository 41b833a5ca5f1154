"""Medicine: trials, their patients, the doses given, and what was measured."""

from __future__ import annotations

from numcolbert.corpus.builtin.generator import Concept, Domain, Measure, Noun, Pattern

HEART = ("hypertension", "heart failure", "atrial fibrillation", "chronic kidney disease")
METABOLIC = ("type 2 diabetes", "type 1 diabetes", "obesity", "fatty liver disease")
CANCER = ("breast cancer", "lung cancer", "multiple myeloma", "ovarian cancer", "acute leukaemia")
OTHER = ("asthma", "migraine", "rheumatoid arthritis", "major depression", "hip fracture", "psoriasis")


def _patients(median: float, share: float = 1.0) -> tuple[Measure, ...]:
    return (
        Measure("patient", median, 0.45, 16, 9800, share=share),
        Measure("participant", median, 0.45, 16, 9800, share=share * 0.7),
    )


def _percent(median: float, low: float, high: float) -> tuple[Measure, ...]:
    return (Measure("percent", median, 0.3, low, high, decimals=1),)


CONCEPTS = (
    Concept(
        "dose",
        (Noun("daily dose", "a"), Noun("starting dose", "a")),
        (Measure("milligram", 45, 0.6, 0.5, 2400, digits=2, decimals=1),),
        "dose",
    ),
    Concept(
        "maintenance dose",
        (Noun("maintenance dose", "a"),),
        (Measure("milligram", 60, 0.6, 0.5, 2400, digits=2, decimals=1),),
        "dose",
    ),
    Concept(
        "systolic blood pressure",
        (Noun("systolic blood pressure", "a"),),
        (Measure("millimeter_Hg", 140, 0.07, 88, 215, decimals=1),),
        "level",
        HEART + METABOLIC,
    ),
    Concept(
        "arterial pressure",
        (Noun("mean arterial pressure", "a"),),
        (Measure("millimeter_Hg", 108, 0.1, 58, 170, decimals=1),),
        "level",
        HEART,
    ),
    Concept(
        "blood pressure reduction",
        (Noun("drop in blood pressure", "a"), Noun("blood pressure reduction", "a")),
        (Measure("millimeter_Hg", 9, 0.3, 1.2, 42, decimals=1),),
        "change",
        HEART + METABOLIC,
    ),
    Concept(
        "HbA1c reduction",
        (Noun("drop in HbA1c", "a"), Noun("HbA1c reduction", "an")),
        (Measure("percent", 0.95, 0.25, 0.12, 3.4, decimals=2),),
        "change",
        METABOLIC,
    ),
    Concept(
        "weight loss",
        (Noun("weight loss", "a"),),
        (
            Measure("kilogram", 6, 0.35, 0.6, 42, decimals=1),
            Measure("pound", 13, 0.35, 1.4, 90, decimals=1, share=1.0),
        ),
        "change",
        METABOLIC,
    ),
    Concept(
        "body weight",
        (Noun("body weight", "a"),),
        (Measure("kilogram", 82, 0.12, 38, 168, decimals=1),),
        "level",
    ),
    Concept(
        "total cholesterol",
        (Noun("total cholesterol level", "a"), Noun("total cholesterol", "a")),
        (Measure("milligram/deciliter", 195, 0.13, 92, 380, decimals=1),),
        "level",
    ),
    Concept(
        "fasting glucose",
        (Noun("fasting glucose", "a"),),
        (Measure("milligram/deciliter", 140, 0.15, 61, 340, decimals=1),),
        "level",
        METABOLIC,
    ),
    Concept(
        "haemoglobin",
        (Noun("haemoglobin level", "a"), Noun("haemoglobin", "a")),
        (Measure("gram/deciliter", 11.5, 0.1, 5.8, 18.4, decimals=1),),
        "level",
        CANCER + HEART,
    ),
    Concept(
        "age", (Noun("mean age", "a"), Noun("median age", "a")), (Measure("year", 52, 0.16, 15, 89, decimals=1),), "age"
    ),
    Concept(
        "follow-up",
        (Noun("median follow-up", "a"), Noun("mean follow-up", "a")),
        (
            Measure("month", 22, 0.35, 1.5, 130, decimals=1),
            Measure("year", 4, 0.3, 0.6, 21, decimals=1, share=1.1),
        ),
        "span",
    ),
    Concept(
        "overall survival",
        (Noun("median overall survival", "a"), Noun("median survival", "a")),
        (Measure("month", 19, 0.3, 2.1, 98, decimals=1),),
        "time",
        CANCER,
    ),
    Concept(
        "time to relapse",
        (Noun("median time to relapse", "a"),),
        (Measure("month", 14, 0.35, 1.2, 88, decimals=1),),
        "time",
    ),
    Concept(
        "hospital stay",
        (Noun("mean hospital stay", "a"), Noun("hospital stay", "a")),
        (Measure("day", 8, 0.3, 1.2, 64, decimals=1),),
        "time",
    ),
    Concept("recovery time", (Noun("recovery time", "a"),), (Measure("day", 14, 0.35, 1.4, 95, decimals=1),), "time"),
    Concept("enrolment", (Noun("total enrolment", "a"), Noun("planned enrolment", "a")), _patients(320), "size"),
    Concept("control group", (Noun("control group", "a"), Noun("placebo group", "a")), _patients(180), "size"),
    Concept("response rate", (Noun("response rate", "a"),), _percent(38, 3, 96), "rate"),
    Concept("dropout rate", (Noun("dropout rate", "a"),), _percent(14, 1, 58), "safety"),
    Concept("mortality", (Noun("one-year mortality", "a"),), _percent(11, 0.6, 68), "safety", CANCER + HEART),
    Concept("adverse event rate", (Noun("rate of adverse events", "a"),), _percent(21, 1.1, 84), "safety"),
)

ASIDES = (
    Concept("rescue dose", (Noun("rescue dose", "a"),), (Measure("milligram", 30, 0.5, 1, 900),)),
    Concept(
        "time since diagnosis",
        (Noun("time since diagnosis", "a"),),
        (Measure("year", 6, 0.25, 1.2, 24, decimals=1), Measure("month", 30, 0.3, 2, 140)),
    ),
    Concept(
        "diastolic blood pressure",
        (Noun("diastolic blood pressure", "a"),),
        (Measure("millimeter_Hg", 85, 0.07, 58, 118),),
    ),
    Concept(
        "lean mass",
        (Noun("lean mass", "a"),),
        (Measure("kilogram", 52, 0.1, 30, 80, decimals=1), Measure("pound", 110, 0.1, 60, 180)),
    ),
    Concept(
        "creatinine",
        (Noun("serum creatinine", "a"),),
        (Measure("milligram/deciliter", 1.1, 0.15, 0.4, 4.8, decimals=1),),
    ),
    Concept("albumin", (Noun("serum albumin", "a"),), (Measure("gram/deciliter", 3.9, 0.06, 2.2, 5.2, decimals=1),)),
    Concept("wait before treatment", (Noun("wait before treatment", "a"),), (Measure("day", 20, 0.3, 3, 90),)),
    Concept("screening pool", (Noun("screening pool", "a"),), _patients(900)),
    Concept("share of smokers", (Noun("share of smokers", "a"),), _percent(24, 3, 70)),
    Concept("share of women", (Noun("share of women", "a"),), _percent(50, 9, 92)),
)

PATTERNS = (
    Pattern(
        "In the {trial} trial, the {c} {was} {q} after {weeks} weeks of {drug}.",
        ("level", "change", "rate", "safety", "dose"),
    ),
    Pattern(
        "Patients with {host} on {drug} had {ac} of {q}, as {trial} showed in {year}.",
        ("level", "change", "rate", "safety", "time"),
    ),
    Pattern("The {year} {trial} study of {drug} in {host} reported {ac} of {q} across {count} centres."),
    Pattern("{drug} for {host}: {c} {q}, {oc} {oq} ({few} trials, {year})."),
    Pattern("While the {oc} came to {oq}, the {c} {was} {q} under {drug} in {trial}."),
    Pattern(
        "Among {hundreds} records from {place}, those on {drug} had {ac} of {q}.",
        ("level", "change", "rate", "safety", "time"),
    ),
    Pattern(
        "{trial} tested {drug} against {drug2} in {host} with {ac} of {q} and {few} interim analyses.",
        ("span", "size", "time", "dose", "age"),
    ),
    Pattern("With {ac} of {q}, {trial} was the largest study of {host} since {year}.", ("size",)),
    Pattern("The protocol, amended {few} times, fixed the {c} at {q} for patients with {host}.", ("dose", "size")),
    Pattern("Reviewers asked why the {c} in {trial} {was} {q} when the {year} protocol had promised something else."),
    Pattern("Section {section} of the report on {drug} gives {ac} of {q}."),
    Pattern("Table {few} lists {ac} of {q} for {drug} and {oac} of {oq}."),
    Pattern(
        "At week {weeks}, the {c} stood at {q} in the {drug} arm of {trial}.",
        ("level", "change", "rate", "safety", "dose"),
    ),
    Pattern(
        "{author} and colleagues ({year}) treated {host} with {drug} and found {ac} of {q}.",
        ("level", "change", "rate", "safety", "time"),
    ),
    Pattern("No earlier trial of {drug} in {host} had seen {ac} of {q}, the {year} editorial noted."),
    Pattern("Site {count} stood apart: its {c} {was} {q}, against the pooled figure of all {hundreds} sites."),
    Pattern(
        "Excluding {few} patients who withdrew, the {c} {was} {q} with {drug}.",
        ("level", "change", "rate", "safety", "time"),
    ),
    Pattern(
        "After {few} cycles of {drug}, {author} recorded {ac} of {q} in adults with {host}.",
        ("level", "change", "rate", "safety", "time"),
    ),
    Pattern(
        "Does {drug} help in {host}? The {c} of {q} in {trial} ({year}) suggests that it does.",
        ("change", "rate", "time", "level"),
    ),
    Pattern(
        "{drug} was stopped early in {year} because the {c} {was} {q} at the {ordinal} interim look.",
        ("change", "rate", "safety", "level"),
    ),
    Pattern("The {c} of {q} in arm {few} puzzled the safety board, which had met {count} times."),
    Pattern("We enrolled adults with {host} at {count} hospitals in {place}; the {c} {was} {q}."),
    Pattern(
        "Of {hundreds} people screened, {count} withdrew, which left {trial} with {ac} of {q}.",
        ("size",),
    ),
    Pattern("In {place}, where {percent} of adults have {host}, {drug} was given at {ac} of {q}.", ("dose",)),
    Pattern("Treatment began at {ac} of {q} and was reviewed after {weeks} weeks by {few} physicians.", ("dose",)),
    Pattern("{author} raised the {c} to {q} in {count} patients with {host} who had not responded.", ("dose",)),
    Pattern("Nurses at the {hundreds}-bed hospital gave {drug} at {ac} of {q} for {host}.", ("dose",)),
    Pattern(
        "Pharmacists should note that the {c} of {drug} is {q}, not the amount printed on page {hundreds}.", ("dose",)
    ),
    Pattern("For patients over 75 with {host}, the label of {drug} limits the {c} to {q}.", ("dose",)),
    Pattern("{ac} of {q} was tolerated by {percent} of those given {drug}.", ("dose", "change")),
    Pattern("{drug} brought {ac} of {q} in {host}, {few} times what {drug2} had achieved in {year}.", ("change",)),
    Pattern(
        "By month {few} the {c} with {drug} had reached {q}, and {count} patients chose to go on.",
        ("change", "rate", "safety", "level"),
    ),
    Pattern("Placebo barely moved the scale, whereas {drug} led to {ac} of {q} in {weeks} weeks.", ("change",)),
    Pattern("The primary endpoint of {trial}, {ac} of {q} at week {weeks}, was met.", ("change", "rate")),
    Pattern("Exercise {few} times a week added to the effect of {drug} and gave {ac} of {q}.", ("change",)),
    Pattern(
        "In {trial}, the {c} under {drug} {was} {q}, and {few} of {count} secondary endpoints were met.",
        ("change", "rate"),
    ),
    Pattern("At entry, patients in {trial} had {ac} of {q} and took {few} other medicines.", ("level", "age")),
    Pattern(
        "A man of {age} with {host} came to the clinic with {ac} of {q}.",
        ("level",),
    ),
    Pattern("Cohort {few}, recruited in {place} in {year}, had {ac} of {q} at baseline.", ("level", "age")),
    Pattern("Risk went up by {percent} once the {c} was {q}, {author} calculated.", ("level",)),
    Pattern("Baseline values were balanced: {c} {q} in both arms, {oc} {oq}, {count} centres.", ("level", "age")),
    Pattern(
        "Volunteers from {count} villages in {place} had {ac} of {q} when the survey started in {year}.",
        ("level", "age"),
    ),
    Pattern(
        "The {ordinal} visit showed {ac} of {q} in the group that took {drug} for {weeks} weeks.", ("level", "change")
    ),
    Pattern(
        "On {drug}, the {c} {was} {q}; on {drug2}, given to {hundreds} others, it was not recorded.",
        ("level", "time", "rate", "safety"),
    ),
    Pattern("The {c} in {trial} {was} {q}, long enough to count {count} relapses.", ("span",)),
    Pattern("Over {ac} of {q}, {percent} of those treated with {drug} had a second episode.", ("span",)),
    Pattern("Surgeons in {place} brought the {c} for {host} to {q} by changing {few} routines.", ("time", "safety")),
    Pattern(
        "Compared with {drug2}, {drug} brought the {c} to {q} (hazard ratio 0.{count}).", ("time", "rate", "safety")
    ),
    Pattern(
        "Those who started {drug} within {few} weeks of diagnosis had {ac} of {q}.",
        ("time", "rate", "safety", "change"),
    ),
    Pattern("Data were cut off in {month} {year}, at {ac} of {q}.", ("span",)),
    Pattern(
        "{author} followed {hundreds} nurses with {host} and arrived at {ac} of {q}.",
        ("time", "rate", "safety", "level"),
    ),
    Pattern(
        "With {drug} the {c} {was} {q} in {host}, with {drug2} {percent} of patients needed a second line.",
        ("time", "change", "level"),
    ),
    Pattern("Funding for {trial} covers {ac} of {q} at {count} hospitals until {later}.", ("span", "size")),
    Pattern(
        "{trial} closed in {year} with {ac} of {q}, {few} months behind schedule.",
        ("span", "size", "time", "rate", "safety"),
    ),
    Pattern("Randomisation in blocks of {few} gave {trial} {ac} of {q} in {place}.", ("size",)),
    Pattern("Because {few} centres dropped out, the {c} in {trial} ended at {q}.", ("size", "rate", "safety")),
    Pattern("The {host} registry of {place}, opened in {year}, supplied {ac} of {q} for {trial}.", ("size",)),
    Pattern("To detect a difference with 80% power, {author} needed {ac} of {q} at {count} sites.", ("size",)),
    Pattern("{trial} had {ac} of {q} when recruitment paused in {month} {year}.", ("size", "rate", "safety", "level")),
    Pattern("In the {year} audit of {count} clinics, the {c} for {host} {was} {q}.", ("rate", "safety", "time")),
    Pattern(
        "At {q}, the {c} under {drug} {was} no surprise after the phase {phase} results of {year}.",
        ("rate", "safety", "change", "time"),
    ),
    Pattern("Grade {phase} rash was common, and the {c} {was} {q} with {drug}.", ("rate", "safety", "dose")),
    Pattern("{few} of {count} experts doubted that in {host} the {c} could ever be {q}.", ("rate", "safety", "change")),
    Pattern(
        "{drug} and {drug2} together gave {ac} of {q} in a phase {phase} trial of {host} with {count} sites.",
        ("rate", "change", "time"),
    ),
    Pattern(
        "The agency approved {drug} for {host} on {month} {dayofmonth}, {year}, citing {ac} of {q}.",
        ("rate", "change", "time"),
    ),
    Pattern(
        "A meta-analysis of {count} trials in {host} arrived at {ac} of {q} for {drug}.",
        ("rate", "safety", "change", "time", "dose"),
    ),
    Pattern(
        "Given once every {few} weeks, {drug} resulted in {ac} of {q} and {oac} of {oq}.",
        ("rate", "safety", "change", "time", "level"),
    ),
    Pattern("Beside {oac} of {oq}, the authors of {trial} give {ac} of {q} for {host}."),
    Pattern("{author} ({year}) mentions {oac} of {oq} only in passing; the {c} {was} {q}."),
    Pattern("Of the {count} outcomes in {trial}, two stand out: {ac} of {q} and {oac} of {oq}."),
    Pattern("The abstract gives the {oc} as {oq}, the full text of {year} the {c} as {q}."),
    Pattern("{trial} had {ac} of {q} in {host}, whereas an older study from {place} had {oac} of {oq}."),
    Pattern("Neither the {oc} ({oq}) nor the {c} ({q}) differed between the {few} arms of {trial}."),
    Pattern("For {host}, appendix {few} shows {ac} of {q} next to {oac} of {oq}."),
    Pattern("With {oac} of {oq} already on record, {author} reported {ac} of {q} in {year}."),
    Pattern("Our {count} readers often confuse two figures for {drug}: the {c} {was} {q}, the {oc} {oq}."),
    Pattern("The {c} in {host} {was} {q} at {count} clinics in {place}, and the {oc} {was} {oq}."),
    Pattern("A slide by {author} contrasts {oac} of {oq} with {ac} of {q} across {few} regions."),
)

FILLERS = {
    "drug": (
        "abrelimod", "altovaxin", "bentoglifor", "brivazumen", "calmitrexol", "cendoparil", "corbavastin",
        "dapristamen", "dorvelukin", "elbrozanide", "evantrimol", "fentoclavir", "gavresidine", "gliravatan",
        "halcotinib", "istrozepam", "jenvomarin", "kelvotaxine", "lanprovitide", "lurmesartin", "mavotrigan",
        "nolvecitan", "nubrelizine", "olvantuzen", "orpedrastat", "pelovirate", "quenzalapine", "ravitolimus",
        "relbecoxin", "sotramelin", "tavoglutine", "telmivorane", "ulprotegan", "vexaripil", "vontralidone",
        "wexomabrin", "xalturacept", "yoscarbine", "zelbuprane", "zintofenac",
    ),
    "trial": (
        "{acronym}-{digit}", "{acronym} {digit}", "{acronym}-{letter}", "{acronym}",
    ),
    "acronym": (
        "ARCADE", "BEACON-X", "CASPIAN", "DAYBREAK", "EMBER", "FALCONET", "GRANITE", "HARBOR", "INDIGO", "JUNIPER",
        "KESTREL", "LANTERN", "MERIDIAN", "NIMBUS", "ORCHARD", "PELICAN", "QUARTZ", "RIVULET", "SPARROW", "TUNDRA",
        "UMBER", "VERTEX-H", "WILLOW", "ZENITH-C",
    ),
    "author": (
        "Halloran", "Mbeki-Lund", "Castellano", "Ostrowska", "Venkataraman", "Lindqvist", "Nakagawa", "Ferreira",
        "Adeyemi", "Dubrovsky", "Kilpatrick", "Moreau",
    ),
    "place": (
        "Denmark", "Kenya", "Japan", "Brazil", "Ontario", "Portugal", "Thailand", "Ghana", "Scotland", "Chile",
        "Finland", "Malaysia", "Greece", "Nepal",
    ),
    "month": ("January", "March", "April", "June", "August", "September", "November", "December"),
    "ordinal": ("second", "third", "fourth"),
    "phase": ("2", "3"),
}  # fmt: skip

MEDICINE = Domain(
    name="medicine",
    hosts=HEART + METABOLIC + CANCER + OTHER,
    concepts=CONCEPTS,
    asides=ASIDES,
    patterns=PATTERNS,
    fillers=FILLERS,
)

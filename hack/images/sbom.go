package main

import (
	"cmp"
	"encoding/json"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// billOfMaterials lists, as SPDX 2.3, the modules that are linked into a binary,
// as the linker wrote them down.
func billOfMaterials(program string, info *debug.BuildInfo, r release) ([]byte, error) {
	type reference struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	type parcel struct {
		ID       string      `json:"SPDXID"`
		Name     string      `json:"name"`
		Version  string      `json:"versionInfo"`
		Download string      `json:"downloadLocation"`
		Analysed bool        `json:"filesAnalyzed"`
		Refs     []reference `json:"externalRefs,omitempty"`
	}
	type relation struct {
		From string `json:"spdxElementId"`
		Type string `json:"relationshipType"`
		To   string `json:"relatedSpdxElement"`
	}
	const own = "SPDXRef-program"
	parcels := []parcel{{ID: own, Name: program, Version: r.version, Download: "NOASSERTION"}}
	relations := []relation{{From: "SPDXRef-DOCUMENT", Type: "DESCRIBES", To: own}}
	modules := append([]*debug.Module{{Path: "stdlib", Version: info.GoVersion}}, info.Deps...)
	for i, module := range modules {
		if module.Replace != nil {
			module = module.Replace
		}
		id := "SPDXRef-module-" + strconv.Itoa(i)
		parcels = append(parcels, parcel{
			ID: id, Name: module.Path, Version: cmp.Or(module.Version, "devel"), Download: "NOASSERTION",
			Refs: []reference{{Category: "PACKAGE-MANAGER", Type: "purl", Locator: "pkg:golang/" + module.Path + "@" + strings.TrimPrefix(module.Version, "go")}},
		})
		relations = append(relations, relation{From: own, Type: "DEPENDS_ON", To: id})
	}
	return json.MarshalIndent(map[string]any{
		"spdxVersion":       "SPDX-2.3",
		"dataLicense":       "CC0-1.0",
		"SPDXID":            "SPDXRef-DOCUMENT",
		"name":              program + " " + r.version,
		"documentNamespace": "urn:dynamo-operator:" + program + ":" + r.version + ":" + r.commit,
		"creationInfo":      map[string]any{"created": r.date.UTC().Format(time.RFC3339), "creators": []string{"Tool: dynamo-operator-images"}},
		"packages":          parcels,
		"relationships":     relations,
	}, "", "  ")
}
